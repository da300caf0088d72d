"""Readers of single files, by format."""
