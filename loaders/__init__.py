"""Loading of sources: from files to validated, committed and indexed quads.

`sources` configures the loader of each domain (`climate`, `wikibase`, `hansard`, `zoning`), which reads files with
`readers` and yields the items of `model`. `pipeline` validates, commits and indexes them, and puts rejected records
into `quarantine`. `mentions` then finds the names of concepts in their text.
"""
