"""What agents can ask of the graph: plain synchronous functions, (kg, typed arguments) to a typed result.

No MCP and no HTTP in here. `registry.TOOLS` is the one list of them; `retrieval` is the one path from free text to
ranked units; `hydration` turns identifiers into cited evidence; `reading` keeps what was asked of the store, so that
every answer can show the SPARQL behind it.
"""
