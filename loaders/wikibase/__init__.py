"""Wikibase entities: JSON, RDF or a CSV of concepts, as the published Wikibase RDF model.

* `instances`: a Wikibase: its IRIs, and the meaning of its properties in SKOS
* `concept_csv`: rows of a CSV as entities
* `values`: a snak as a term and a value node
* `entity_rdf`: an entity as quads
* `live_endpoint`: the items that a query selects at a live SPARQL endpoint
* `rdf_input`: Wikibase RDF split into entities
* `skos`: the view of concepts in ``graph/der/skos``; `graph` derives it from stored items
* `loader`: the loader ``wikibase``
"""
