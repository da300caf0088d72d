"""Tools of the mount ``/mcp/wikidata``: items and properties by meaning, claims with their provenance, facts."""
