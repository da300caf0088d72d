"""Dereferencing: everything that the graphs and the ontology state about one IRI."""
