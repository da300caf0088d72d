"""Tools for SHACL: validation on request and in the background, with the source of each result."""
