"""Concepts: found by name, their neighbors by statements, and the passages that mention them."""
