"""SHACL: record shapes at the gate of every load, and `kg validate` for files and for the store.

`shapes.Shapes` holds a suite, `gate.RecordGate` checks candidate graphs before they are committed, `merging` makes a
data graph or a shapes graph of what `files` say, `stored` checks the records that a store holds, `self_check` what ships
with Quadcite, and `apart` data and shapes that come from outside, in a process of their own. `incremental` tells which
focus nodes a change can affect. `report` holds results; `writing` writes them as they come: for people (`summary`), as
JSON, as a ``sh:ValidationReport`` and as `sarif`; `positions` tells the lines of files that they are about.

A suite goes one way: `reading` (with `components` for what is written in SPARQL) makes a `model` of a shapes graph, or
says what is ill-formed in it; `compiler` and `prebinding` make queries of the model; `engine` runs them over `data`, a
candidate or what a store holds; what no query can do goes to `reference`, which is pySHACL.
"""
