"""The comparisons of variables with constants inside an expression."""

from __future__ import annotations

from typing import Final

from kg.sparql.algebra import Comparison, Node
from kg.sparql.cursor import Cursor

_COMPARED: Final = frozenset({"=", "!=", "<", ">", "<=", ">="})
_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_AROUND: Final = frozenset({"(", ")", "&&", "||", "!", ",", "}", "{", "."})


class Expressions(Cursor):
    """Finds comparisons by what stands left and right of an operator, without reading the expression as a whole."""

    def _compare(self, at: int, end: int, spans: list[tuple[int, int]]) -> None:
        index = at
        while index < end:
            if (span := next((span for span in spans if span[0] == index), None)) is not None:
                index = span[1]
                continue
            text = self._tokens[index].text
            if text in _COMPARED:
                left, before = self._operand_before(index)
                right, after = self._operand_after(index + 1)
                if before in _AROUND and after in _AROUND:
                    self._compared(left, text, right)
                    self._compared(right, _TURNED.get(text, text), left)
            elif text.upper() == "LANGMATCHES" and self._tokens[index + 1].text == "(":
                left, after = self._operand_after(index + 2)
                if after == "," and isinstance(left, tuple):
                    comma = next(i for i in range(index + 2, end) if self._tokens[i].text == ",")
                    self._compared(left, "LANGMATCHES", self._operand_after(comma + 1)[0])
            elif text.upper() == "IN" and self._tokens[index + 1].text == "(":
                negated = self._tokens[index - 1].text.upper() == "NOT"
                left, _ = self._operand_before(index - negated)
                inside = index + 2
                while inside < end and self._tokens[inside].text != ")":
                    self._compared(left, "NOT IN" if negated else "IN", self._operand_after(inside)[0])
                    inside = self._after_comma(inside, end)
            index += 1

    def _after_comma(self, index: int, end: int) -> int:
        while index < end and self._tokens[index].text not in (",", ")"):
            index += 1
        return index + (index < end and self._tokens[index].text == ",")

    def _compared(self, left: object, operator: str, right: object) -> None:
        if isinstance(left, tuple) and isinstance(right, Node):
            self._query.comparisons.append(Comparison(left[0], left[1], operator, right, self._scope))

    def _operand_before(self, index: int) -> tuple[object, str]:
        """Return the operand that ends before token `index`, and the text before it."""
        cut = self._tokens
        token = cut[index - 1]
        if token.kind == "variable":
            return (self._node(token), ""), cut[index - 2].text
        if (
            token.text == ")"
            and index >= 5
            and cut[index - 2].kind == "variable"
            and cut[index - 3].text == "("
            and cut[index - 4].kind in ("word", "name")
        ):
            return (self._node(cut[index - 2]), cut[index - 4].text.upper()), cut[index - 5].text
        start = index - 1
        if token.kind == "language" or (start >= 2 and cut[start - 1].text == "^^"):
            start -= 1 if token.kind == "language" else 2
        elif token.text == ")" and index >= 4 and cut[index - 2].kind == "string":
            start = index - 4
        node, _ = self._operand_after(start)
        return (node if isinstance(node, Node) else None), cut[start - 1].text if start else ""

    def _operand_after(self, index: int) -> tuple[object, str]:
        """Return the operand that begins at token `index`, and the text after it."""
        cut = self._tokens
        token = cut[index]
        following = [cut[at].text if at < len(cut) else "" for at in range(index + 1, index + 5)]
        if token.kind == "variable":
            return (self._node(token), ""), following[0]
        if token.kind in ("word", "name", "iri") and following[0] == "(" and following[2] == ")":
            inner = cut[index + 2]
            if inner.kind == "variable" and token.kind != "iri":
                return (self._node(inner), token.text.upper()), following[3]
            if inner.kind == "string" and token.kind != "word":
                cast, value = self._node(token), self._node(inner)
                end = cut[index + 3].end
                text = self._query.text[token.start : end]
                return Node("literal", value.value, text, token.start, datatype=cast.value), following[3]
            return None, following[3]
        signed = token.text in ("+", "-") and index + 1 < len(cut) and cut[index + 1].kind == "number"
        if signed or token.kind in ("string", "number", "iri", "name") or token.text.upper() in ("TRUE", "FALSE"):
            kept, self._at = self._at, index
            node = self._term()
            after, self._at = self._peek(), kept
            return node, after
        return None, following[0]
