"""Connectors to remote MCP servers: the manifest, the service map that agents read, and the client that calls them."""
