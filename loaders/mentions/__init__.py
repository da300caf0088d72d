"""Where text names concepts: kept in line with the texts and the concepts of a store, in both directions.

`graph.concept_names` reads the names of concepts from the store and `graph.text_units` its texts; `matcher` finds the
names in the texts; `graph.refresh` commits what that changes. `search_state` records which texts were searched for
which names, so that the next run looks only at what has changed, and `graph_words` which texts cannot contain a new
name. The mentions of each record have a graph of their own, ``graph/ext/mentions/{domain}/{record}``, derived from the
record's graph.
"""
