"""Instructions of the MCP servers, made from the contents of the graph: the use of a mount, and the other mounts."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, iri_of
from kg.store.protocol import Term, term_text
from kg.tools.calls import TEXTS_ARE_DATA
from kg.tools.mounts import MOUNTS, RESEARCH
from kg.tools.registry import TOOLS
from kg.vocabulary import KG, SKOS, iri_prefix

# One scan per class, by its index, and not one per graph.
CONTENTS: Final = f"""
SELECT ?class (COUNT(DISTINCT ?thing) AS ?count) WHERE {{
  {{ VALUES ?class {{ kg:Speech kg:Municipality kg:CodeSection kg:File }} ?thing a ?class }}
  UNION {{ ?document a kg:PolicyDocument ; kg:slug ?thing BIND(kg:PolicyDocument AS ?class) }}
  UNION {{ ?thing a skos:Concept BIND(skos:Concept AS ?class) FILTER(!STRSTARTS(STR(?thing), "{iri_prefix("code")}")) }}
}} GROUP BY ?class"""

_NAMES: Final = {
    KG.PolicyDocument.value: "laws and policies on climate",
    KG.Speech.value: "speeches in parliament",
    KG.CodeSection.value: "sections of municipal codes",
    KG.Municipality.value: "municipalities",
    KG.File.value: "files",
    SKOS.Concept.value: "concepts",
}

_SIZES: Final = (
    "Answers keep to max_tokens: notes report each cut, next_offset (as offset) or text_from continues. `sources` has "
    'each source once, by the keys that results refer to; detail="full" repeats it and shows whole passages; '
    "explain=true adds the SPARQL that ran. If nothing is found, say so."
)


_HOMES: Final = {
    tool.name: path
    for path, mount in reversed(list(MOUNTS.items()))
    if mount.tags and RESEARCH not in mount.tags
    for tool in TOOLS
    if tool.is_on(mount.tags)
}
"""The first mount that has each tool."""
_NAMED_TOOL: Final = re.compile(r"`(\w+(?:\.\w+)?)`|\b((?:[a-z]+\.)?[a-z]+(?:_[a-z]+)+)\b")
"""A tool in a text: its name in backticks, or a name with underscores, which no sentence has for anything else."""


def name_mounts(text: str, here: Collection[str]) -> str:
    """Add its mount to each tool that `text` names and that is not among the tools `here`.

    A tool that is listed here under its alias is named so.
    """

    def add(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if "." in name and (alias := name.replace(".", "_")) in here:
            return found[0].replace(name, alias)
        return f"{found[0]} (on {_HOMES[name]})" if name in _HOMES and name not in here else found[0]

    return _NAMED_TOOL.sub(add, text)


def build_instructions(kg: KnowledgeGraph, path: str, here: Collection[str] = ()) -> str:
    """Build the instructions of the mount at `path` from the contents of the graph.

    Tools are named as in `here`, the names that the mount lists, where these are aliases.
    """
    parts = [
        f"A knowledge graph of civic text{_describe_contents(kg)}.",
        "Every passage comes with its document, file and row or lines: cite them.",
        f"{TEXTS_ARE_DATA} In notes and hints [1] is the first of `names`, quoted from the data or the call.",
    ]
    if path == "/mcp/all":
        guides = [mount.guide for mount in MOUNTS.values() if mount.purpose and mount.guide]
    else:
        guides = [MOUNTS[path].guide]
    parts += [name_mounts(guide, here) if here else guide for guide in guides]
    if path != "/mcp/research":
        parts.append(_SIZES)
    if path not in ("/mcp/all", "/mcp/research"):
        others = [f"{each} ({mount.purpose})" for each, mount in MOUNTS.items() if mount.purpose and each != path]
        parts.append(f"Other mounts of this server: {', '.join(others)}.")
    return " ".join(parts)


def _describe_contents(kg: KnowledgeGraph) -> str:
    """Describe the contents by their numbers, or leave them out while queries fail, for example at a stop."""

    def read(rows: list[dict[str, Term]]) -> str:
        counts = {iri_of(row["class"]): int(term_text(row["count"])) for row in rows if "class" in row}
        kinds = [f"{counts[iri]:,} {name}" for iri, name in _NAMES.items() if counts.get(iri)]
        return f": {', '.join(kinds) or 'nothing is loaded yet'}"

    try:
        return Reader(kg).kept("contents", CONTENTS, read)
    except QuadciteError:  # a client can connect without the numbers
        return ""
