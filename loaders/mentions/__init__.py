"""Where text names concepts: kept in line with the texts and the concepts of a store, in both directions.

`table` reads the names of concepts from the store, `texts` its text units, `loaders.extraction` finds the ones in the
others, `refresh` commits what that changes, `ledger` remembers which texts were searched for which names, so that the
next time only what has changed is looked at, and `vocabularies` in which of them a new name cannot stand. The mentions
of each record stand in a graph of their own, ``graph/ext/mentions/{domain}/{record}``, derived from the record's graph.
"""

from loaders.mentions.refresh import MentionReport, refresh

__all__ = ["MentionReport", "refresh"]
