"""SPARQL as text: tokens, terms in queries, the guard that decides what may run, and hints about queries.

Nothing here reads or writes data. `bind` (in `terms`) is the only way to insert data into a query. `check_query` (in
`guard`) refuses requests to other servers (SERVICE, LOAD) and updates.
"""
