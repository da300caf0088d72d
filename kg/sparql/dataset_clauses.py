"""The dataset that a request gives to an update, written into its text. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.sparql.lexer import Token, tokens


def with_dataset(update: str, default_graphs: Sequence[NamedNode], named_graphs: Sequence[NamedNode]) -> str:
    """Return `update` with USING and USING NAMED in each operation that has a WHERE (section 2.2.3 of the protocol).

    Raises InvalidInputError, as the section demands, for an update that names a dataset itself.
    """
    using = "".join(f" USING {graph}" for graph in default_graphs)
    using += "".join(f" USING NAMED {graph}" for graph in named_graphs) + " "
    significant = [token for token in tokens(update) if token.kind not in ("space", "comment")]
    pieces: list[str] = []
    done = 0
    for at, token in _outside_braces(significant):
        word = token.text.partition(":")[0].upper() if token.kind in ("word", "name") else ""
        previous = significant[at - 1].text.upper() if at else ""
        if previous == "PREFIX":
            continue
        if word in ("WITH", "USING", "USINGNAMED"):
            raise InvalidInputError(
                f"the update names its dataset with {word} (at character {token.start}), so the request must not do so "
                "as well with using-graph-uri or using-named-graph-uri"
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
    """Yield each token, with its index, that stands in no group."""
    depth = 0
    for at, token in enumerate(significant):
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
        elif depth == 0:
            yield at, token


def _group_end(significant: list[Token], update: str) -> int:
    """Return the offset after the first group in `significant`, tokens of `update`."""
    depth = 0
    for token in significant:
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "}" and depth == 0:
            return token.end
    return len(update)
