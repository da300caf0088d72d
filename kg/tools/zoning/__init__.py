"""Tools for municipal codes: permissions, standards, definitions, sections, citations and summaries."""
