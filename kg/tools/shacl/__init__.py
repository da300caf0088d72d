"""SHACL as a tool: what breaks the shapes, and where it was read from."""
