"""Zoning records as graphs, and graphs derived from stored codes. The only zoning package that reads the store."""
