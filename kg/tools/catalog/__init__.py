"""The catalog of the graph: its resources, filter values and health."""
