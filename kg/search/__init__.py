"""Search over text units: BM25 and embeddings, in a separate process.

* `protocol`: the interface of a search index, which is derived from the store
* `index_sync`: the index follows the store
* `index_client`: the embedded index; starts, feeds and restarts `index_process`
* `index_process`: Qdrant Edge and the embedder, in a process of their own
* `shard`: one Qdrant Edge shard on disk; `shard_group`: those of one process; `shards`: all of an index
* `points`: what shards are asked and given, as plain data
* `unit_store`: the text units in the shards, replaced by graph
* `unit_index`: these units, ranked and counted
* `vector_worker`: the thread that embeds units and queries, and optimizes the shard
* `ranking`: fusion of BM25 and embedding scores
* `embedding`: text to vectors, by local models or a remote endpoint
* `registry`: languages, sizes and calibrations of embedding models
* `sentence_encoder`: the model for languages other than English
* `vector_cache`: vectors by model and text
* `models`: download, verification and listing of embedding models
* `bert_onnx`: conversion of MiniLM's weights to ONNX
"""
