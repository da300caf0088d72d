"""Climate laws and policies: the passages of documents, as published in four column layouts.

`documents.read` is the way in. `layouts` says which columns mean what, `languages` turns names of languages into
BCP 47 codes, `markup` turns the HTML of a description into passages.
"""
