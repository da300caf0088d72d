"""The store: named graphs, atomic commits of differences, immutable snapshots, and the workers that query them.

* `protocol`: what any store offers, and the results of queries
* `oxigraph`: the embedded store, the only writer of a data directory
* `plain`: a plain dataset, without provenance or shapes, that the endpoint's conformance is tested on
* `difference`: candidates in canonical form, and the update string from the stored graphs to them
* `orphans`: shared graphs that a commit leaves without a reference
* `ownership`: a triple stands in one content graph; what people write yields to what loaders assert
* `skolem`: blank nodes as IRIs made from their content
* `reach`: which graphs a SPARQL Update may write
* `updates`: a SPARQL Update run on a copy of the store, and what it changed there
* `confinement`: foreign text run in a process of its own, within limits
* `errand`: what runs inside such a process
* `lock`: who holds a data directory
* `snapshots`: immutable checkpoints of the store, counted by generation
* `sandbox`: killable worker processes that run every query over a snapshot
* `replies`: what a worker says, or how it ends, as results and errors
* `worker`: what runs inside such a process
"""
