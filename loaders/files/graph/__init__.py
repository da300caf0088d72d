"""Graphs that are derived from the stored texts of files."""
