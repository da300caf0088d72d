"""The store: named graphs, atomic commits of differences, immutable snapshots, and the workers that query them.

* `protocol`: what any store offers, and the results of queries
* `oxigraph`: the embedded store, the only writer of a data directory
* `lock`: who holds a data directory
* `snapshots`: immutable checkpoints of the store, counted by generation
* `sandbox`: killable worker processes that run every query over a snapshot
* `worker`: what runs inside such a process
"""
