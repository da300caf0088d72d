"""Everything that is async, HTTP or MCP: the applications around the tools, and nothing that knows RDF.

`app` is the composition root: it opens the graph, mounts everything, and serves it on loopback. `mcp` turns
`kg.tools.registry.TOOLS` into MCP servers by tag; `health` is for machines; `sparql_protocol` is the SPARQL endpoint.
"""
