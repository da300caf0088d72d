"""The store: named graphs, atomic commits of differences, and immutable snapshots.

`protocol` declares what every store offers; `oxigraph` implements it, and is the only writer of a data directory. Pure
modules, testable without a store on disk, decide which IRIs replace blank nodes (`skolem`), which graphs an update may
write (`update_scope`) and which further quads a commit removes (`ownership`).
"""
