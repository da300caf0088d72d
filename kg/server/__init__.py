"""The server: everything asynchronous, HTTP or MCP, around the tools and the store.

`app` is the composition root: it opens the graph, mounts all routes, and serves them. `mcp` turns
`kg.tools.registry.TOOLS` into MCP servers by tag, and `tool_routes` serves the same tools and the commands over HTTP.
`sparql_protocol`, `graph_store` and `shacl_endpoint` are the endpoints for RDF clients; `pages` are for browsers.
"""
