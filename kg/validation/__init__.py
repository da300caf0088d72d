"""SHACL: record shapes at the gate of every load, and `kg validate` for files and for the store.

`shapes.Shapes` holds a parsed suite, `gate.RecordGate` checks candidate graphs before they are committed,
`files.validate_files` and `files.validate_store` check what is there already, and `report` words the findings for
people, for programs and as a ``sh:ValidationReport``.
"""
