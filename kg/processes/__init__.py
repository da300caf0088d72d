"""Work in confined child processes: starting, limiting, messaging and killing them."""
