"""Folders that are watched, and graphs that are derived from the stored texts of files."""
