"""Mentions of concepts in texts, updated when texts or concepts change.

`graph.concept_names` loads the names of concepts and `graph.text_units` the texts; `matcher` finds the names in the
texts; `graph.refresh` commits the changes. `kg.derivations` records which texts were searched for which names, so that
the next run searches only what has changed, and `graph_words` which texts cannot contain a new name. The mentions
of each record are in a graph of their own, ``graph/ext/mentions/{domain}/{record}``, derived from the record's graph.
"""
