"""SKOS views derived from stored Wikibase items."""
