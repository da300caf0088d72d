"""The W3C's test suites for SPARQL, run over HTTP against the endpoint over a plain dataset."""
