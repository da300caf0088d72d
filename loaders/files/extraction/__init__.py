"""Entities and relations in the text of a file, without access to the store."""
