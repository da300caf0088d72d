"""Tools for the schema of the graph: its terms, as declared and as measured in the store, and example queries."""
