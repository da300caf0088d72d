"""Tools for agents: typed functions, one package per domain, that MCP, HTTP and the command line call by name.

`registry` lists them, and `calls` checks their arguments. They read the graph through `kg.retrieval`: `hybrid_search`
ranks text units, `evidence` adds their provenance, and `reader` records the queries that each result was read with.
"""
