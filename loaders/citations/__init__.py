"""Citations of laws in texts: numbered sections and codified law, and the sentences around them.

`section_citations` finds the citations, with the laws that `statutes` knows and the lists that `number_lists` parses;
`relationships` classifies them by their sentence. `graph.claims` builds the claims about them.

The confidence of each form is about the share of its citations that were right, with one right and one wrong added,
and at most 0.98. Its comment has the counts, of labelled ordinances and of samples of real texts that were read by hand
(zoning, Hansard, climate). The confidence is lower where few occur, and where a law must not become an edge of the
graph: the comments give the reasons.
"""
