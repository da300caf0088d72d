"""Where every quad comes from: loads record it in ``graph/prov``, `why_iri` and `why_triple` read it back.

A `Run` is one invocation of a loader. It hands `Store.commit` a function that says, of each graph the commit changes,
which run wrote it and which rows of which file it was read from; that is committed in the same atomic step as the
graph itself. What a replaced graph said before goes, and with the last graph that a run, a snapshot or an agent
explains, its description goes too.
"""
