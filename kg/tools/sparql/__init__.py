"""Tools for SPARQL: typed rows, SERVICE clauses, and diagnosis of empty results."""
