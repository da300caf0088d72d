"""Stored documents of the publisher, and the files that describe them."""
