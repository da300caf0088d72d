"""From a source to checked quads.

* `model`: what a source module yields
* `readers`: tables of any format, streamed
* `climate_policy`: climate laws and policies
* `rdf`: documents to quads
* `pipeline`: read, skip what is unchanged, check, commit, index, report
"""
