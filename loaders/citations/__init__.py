"""Citations of laws in texts: numbered sections and codified law, and the sentences around them.

`section_citations` finds the citations, with the laws that `statutes` knows and the lists that `number_lists` parses;
`relationships` classifies them by their sentence. `graph.claims` builds the claims about them.

The confidence of each form is the share of its citations that were right, with one right and one wrong added. They are
of labelled ordinances and of samples of real texts that were read by hand (zoning, Hansard, climate). It is lower where
few occur, and where a law must not become an edge of the graph: the comments give the reasons.
"""
