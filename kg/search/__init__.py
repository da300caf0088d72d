"""Search over text units: BM25 and embeddings, in a process of their own.

* `protocol`: what any index offers
* `models`: getting, checking and listing embedding models
* `embedding`: text to vectors, through fastembed
* `edge`: the embedded index: a client of `edge_process`, which holds Qdrant Edge and the embedder
* `ranking`: how BM25 and embedding scores become one order
"""
