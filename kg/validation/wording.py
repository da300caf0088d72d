"""What a result says: the message of its shape, filled in, or a sentence about the constraint where it has none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode

from kg.store.protocol import Term
from kg.validation import model
from kg.validation.model import Constraint
from kg.vocabulary import curie

_PLACE: Final = re.compile(r"\{[?$](\w+)\}")
_LISTED: Final = 5


def fill_in(message: Literal, values: Mapping[str, Term]) -> Literal:
    """Return a message with ``{?name}`` and ``{$name}`` replaced by what the name stands for, if it is known."""

    def said(match: re.Match[str]) -> str:
        term = values.get(match[1])
        if term is None:
            return match[0]
        return term.value if isinstance(term, Literal | NamedNode) else str(term)

    text = _PLACE.sub(said, message.value)
    return Literal(text, language=message.language) if message.language is not None else Literal(text)


def main_text(messages: Sequence[Literal]) -> str:
    """Return the message for readers of English, or one without a language, or the first one."""
    ranked = sorted(
        messages, key=lambda each: 0 if (each.language or "").startswith("en") else 1 if not each.language else 2
    )
    return ranked[0].value if ranked else ""


def sentence(constraint: Constraint, detail: str = "") -> str:
    """Return what `constraint` wants. `detail`: the language that stands twice, for ``sh:uniqueLang``."""
    match constraint:
        case model.ClassOf(_, name):
            return f"The value is an instance of {curie(name.value)}."
        case model.Datatype(_, name):
            return f"The value is a well-formed literal of {curie(name.value)}."
        case model.NodeKind(_, kind):
            return f"The value is of the kind sh:{kind}."
        case model.Count(_, least, None):
            return f"There {_are(least)} at least."
        case model.Count(_, _, most):
            return f"There {_are(most)} at most."
        case model.Range(_, relation, bound):
            return f"The value is {relation} {bound.value}."
        case model.Length(_, relation, length):
            return f"The value has {'at least' if relation == '>=' else 'at most'} {length} characters."
        case model.Pattern(_, pattern, flags):
            return f"The value matches {pattern!r}{f' with the flags {flags}' if flags else ''}."
        case model.LanguageIn(_, ranges):
            return f"The value has a language tag of {', '.join(ranges)}."
        case model.UniqueLang():
            return f"Each language has one value; {detail!r} has several."
        case model.Equals(_, predicate):
            return f"The values are those of {curie(predicate.value)}."
        case model.Disjoint(_, predicate):
            return f"The value is none of {curie(predicate.value)}."
        case model.Less(_, relation, predicate):
            return f"The value is {relation} those of {curie(predicate.value)}."
        case model.Closed():
            return "A closed shape allows no other property."
        case model.HasValue(_, value):
            return f"{_shown(value)} is among the values."
        case model.In(_, values):
            more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
            return f"The value is one of {', '.join(map(_shown, values[:_LISTED]))}{more}."
        case model.Node(_, shape):
            return f"The value conforms to {_named(shape)}."
        case model.Combined(_, operator, shapes):
            how = {"not": "does not conform to", "and": "conforms to all of", "or": "conforms to one or more of"}
            return f"The value {how.get(operator, 'conforms to exactly one of')} {', '.join(map(_named, shapes))}."
        case model.Qualified(_, shape, _, least, most):
            number = f"{least} values at least" if least is not None else f"{most} values at most"
            return f"{number} conform to {_named(shape)}."
    return f"The node conforms to {curie(constraint.component.value)}."


def _are(number: int | None) -> str:
    return f"is {number} value" if number == 1 else f"are {number} values"


def _named(shape: model.ShapeNode) -> str:
    return curie(shape.value) if isinstance(shape, NamedNode) else "a shape without a name"


def _shown(term: Term) -> str:
    if isinstance(term, NamedNode):
        return curie(term.value)
    return term.value if isinstance(term, BlankNode) else str(term)
