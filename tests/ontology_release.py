"""Record the released meaning of the ontology's terms (``make released``)."""

from __future__ import annotations

import sys

from pyoxigraph import parse

from kg import bundle
from kg.shacl.releases import written

MODULES = sorted(bundle.folder("ontology").glob("*.ttl"))
FILE = bundle.folder("ontology") / "released" / "terms.nt"

if __name__ == "__main__":
    FILE.write_text(written(quad for path in MODULES for quad in parse(path=path)), encoding="utf-8")
    sys.stdout.write(f"wrote {FILE.name}\n")
