"""SPARQL as a tool: typed rows, and why there are none."""
