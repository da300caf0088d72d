"""Quadcite: one RDF knowledge graph of civic text, where every answer cites its quads.

The import rule (a module imports only from modules to its left; a test checks it)::

    errors, settings, vocabulary <- sparql <- store <- search, validation, reasoning, provenance
        <- knowledge_graph <- tools <- server <- cli
"""

__version__ = "0.1.0"
