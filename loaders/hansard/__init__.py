"""Hansard: official files of sitting days, and speeches in tables.

`reading` is the way in. It sends each file to `xml` (with `sgml` for files of 1981 to 1997), which makes a sitting of
the neutral `model`, or to `tables`, which takes rows as `columns` tells them apart. What comes out becomes quads and
text units in `sittings` and `speeches`; `chunks` cuts the words, and `authorities` says who and what is meant, by the
vocabulary that `parties` reads. An official file is one record, a day of one chamber; of a table every speech is one.
"""
