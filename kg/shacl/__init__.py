"""SHACL validation: the gate of every load, `kg validate`, and validation requests to the server.

Suites, in the order of processing:

* `shapes`: a suite of shapes, and its validation of a data graph; the entry point of this package
* `shape_parser`, `sparql_constraints`: from a shapes graph to `shape_model`, with the errors in the shapes graph
* `shape_model`, `property_paths`: shapes, constraints and paths as values
* `compiler`, `prebinding`, `literals`: from shapes to set-at-a-time queries
* `engine`: runs the queries over a `data_graph` (candidate quads, or graphs of a store) and words results by `messages`
* `pyshacl_engine`: runs the shapes that do not compile

Callers and input:

* `gate`: candidate graphs against the record shapes before they are committed
* `rdf_files`, `documents`: files as data graphs and as shapes graphs
* `self_check`: the ontology, shapes and fixtures that ship with Quadcite
* `process`, `child`: validation of untrusted data and shapes in a confined process
* `incremental`, `dependencies`: the focus nodes that a change can affect

Output:

* `report`: results as values and as a ``sh:ValidationReport``
* `report_writers`, `report_summary`, `sarif`: reports as text, JSON, Turtle and SARIF
* `line_numbers`: the lines of files that results are about
"""
