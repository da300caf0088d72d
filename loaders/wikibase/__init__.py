"""Wikibase entities: JSON, RDF or a CSV of concepts, into the published Wikibase RDF model.

* `instances`: one Wikibase: its IRIs, and which of its properties mean what in SKOS
* `streams`: the entities of a JSON dump, one after the other
* `concepts`: rows of a CSV as entities
* `values`: what a snak says, as a term and as a value node
* `entities`: an entity as quads
* `remote`: the items that a query selects at a live SPARQL endpoint
* `turtle`: Wikibase RDF cut into entities
* `skos`: the view of concepts in ``graph/der/skos``
* `reading`: all of that as the loader ``wikibase``
"""
