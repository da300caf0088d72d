"""Citations of laws in texts: numbered sections and codified law, and the sentences around them.

`section_citations` finds the citations, with the laws that `statutes` knows and the lists that `number_lists` parses;
`relationships` classifies them by their sentence. `graph.claims` builds the claims about them.
"""
