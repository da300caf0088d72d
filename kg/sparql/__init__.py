"""SPARQL as text: terms quoted into queries, tokens, and the guard that decides what may run.

Pure functions over strings. ``bind`` (in `terms`) is the only way that data enters a query; ``check_query`` (in
`guard`) refuses what an endpoint must never run: requests to other servers (SERVICE, LOAD) and updates.
"""
