"""Municipal codes in each file format, parsed into sections in document order."""
