"""Tools over files: retrieval by text and graph, entities, ingestion and status."""
