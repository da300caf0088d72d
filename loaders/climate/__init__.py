"""Climate laws and policies: `documents` reads the passages of documents, published in one of four `layouts`."""
