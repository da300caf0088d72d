"""Climate laws and policies: families of documents, jurisdictions and the history of a family."""
