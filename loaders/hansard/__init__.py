"""Parliaments: official files of Hansard, tables of speeches, and corpora of ParlaMint.

`loader` is the entry point. Official files go to `sitting_xml` (with `sgml` and `sgml_conversion` for files of 1981
to 1997), which builds a sitting of the neutral `sitting_model` by way of `transcript`; tables go to `speech_tables`,
with `table_columns`. `sitting_records` and `speech_records` build quads and text units; `chunks` cuts the words;
`authorities` identifies people, parties, places and bills by the vocabulary in `parties`. An official file is one
record, a day of one chamber; in a table each speech is one. The modules `parlamint_*` read the
corpora of any parliament, beginning with `parlamint_corpus`.
"""
