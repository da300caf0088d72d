"""Shared parts of the tools: filters, hybrid search, evidence and provenance, concepts, and result models."""
