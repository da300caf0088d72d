"""Services elsewhere, asked at addresses that a setting or an argument names.

* `http`: one request within a deadline and a size; when to ask again
* `answers`: answers that were given before, on disk
* `sparql`: live SPARQL endpoints
"""
