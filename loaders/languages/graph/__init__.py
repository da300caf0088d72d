"""Languages of texts as derived graphs."""
