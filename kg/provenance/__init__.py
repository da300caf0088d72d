"""Provenance: every graph is described in ``graph/prov``, by loads and user writes, and `explain_iri` reads it back.

A `Run` is one invocation of a loader. It passes `Store.commit` a function that describes each graph of the commit: the
run that wrote it, and the rows of the files it was read from. The description is committed in the same atomic step as
the graph. It replaces the previous description of the graph; runs, snapshots and agents that no longer explain any
graph are removed.
"""
