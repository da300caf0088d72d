"""Citations of laws in texts: numbered sections and codified law, and the sentences around them.

`section_citations` finds the citations, with the laws that `statutes` knows and the lists that `number_lists` parses;
`relationships` classifies them by their sentence. `graph.claims` builds the claims about them.

The citations as a whole were measured. Of samples of real texts, read by hand, these were right: zoning 99 of 100,
Hansard 199 of 200, climate 94 of 100. The confidence of a single form (`act_titles.SEVERAL_WORDS`, `laws.OF_TREATY`,
...) was not measured. It orders the forms by how ambiguous their words are; do not use it as a probability.
"""
