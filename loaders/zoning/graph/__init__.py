"""Zoning records as graphs, and what is derived from stored codes. The only zoning package that reads the store."""
