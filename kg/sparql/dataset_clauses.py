"""Write the dataset of a request (``using-graph-uri``) into the text of its update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.sparql.lexer import Token, significant_tokens


def add_dataset(update: str, default_graphs: Sequence[NamedNode], named_graphs: Sequence[NamedNode]) -> str:
    """Add USING and USING NAMED to each operation that has a WHERE (SPARQL 1.1 Protocol, section 2.2.3).

    Raises InvalidInputError, as that section requires, for an update that contains WITH or USING itself.
    """
    using = "".join(f" USING {graph}" for graph in default_graphs)
    using += "".join(f" USING NAMED {graph}" for graph in named_graphs) + " "
    significant = list(significant_tokens(update))
    pieces: list[str] = []
    done = 0
    for at, token in _outside_braces(significant):
        word = token.text.partition(":")[0].upper() if token.kind in ("word", "name") else ""
        previous = significant[at - 1].text.upper() if at else ""
        if previous == "PREFIX":
            continue
        if word in ("WITH", "USING", "USINGNAMED"):
            raise InvalidInputError(
                f"Conflicting dataset: the update contains {word} (at character {token.start}) and the request "
                "using-graph-uri or using-named-graph-uri. Use one of them."
            )
        if not word.endswith("WHERE"):
            continue
        pieces.append(update[done : token.start])
        done = token.start
        if previous != "}":  # DELETE WHERE { ... }, which takes no USING, is DELETE { ... } WHERE { ... }
            done = token.end - len("WHERE")
            pieces.append(update[token.start : done] + update[token.end : _group_end(significant[at:], update)])
        pieces.append(using)
    return "".join(pieces) + update[done:]


def _outside_braces(significant: list[Token]) -> Iterator[tuple[int, Token]]:
    """Yield each token outside all groups, with its index."""
    depth = 0
    for at, token in enumerate(significant):
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
        elif depth == 0:
            yield at, token


def _group_end(significant: list[Token], update: str) -> int:
    """Return the end offset of the first group in `significant`, tokens of `update`."""
    depth = 0
    for token in significant:
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "}" and depth == 0:
            return token.end
    return len(update)
