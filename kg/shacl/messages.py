"""Messages of results: the message of the shape with values substituted, or a default message for the constraint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode

from kg.shacl import shape_model
from kg.shacl.shape_model import Constraint
from kg.store.protocol import Term
from kg.vocabulary import curie

_PLACE: Final = re.compile(r"\{[?$](\w+)\}")
_LISTED: Final = 5


def fill_in(message: Literal, values: Mapping[str, Term]) -> Literal:
    """Substitute ``{?name}`` and ``{$name}`` in a message by the values of these variables, where known."""

    def substitute(match: re.Match[str]) -> str:
        term = values.get(match[1])
        if term is None:
            return match[0]
        return term.value if isinstance(term, Literal | NamedNode) else str(term)

    text = _PLACE.sub(substitute, message.value)
    return Literal(text, language=message.language) if message.language is not None else Literal(text)


def choose_text(messages: Sequence[Literal]) -> str:
    """Choose the English message, else one without a language tag, else the first."""
    ranked = sorted(
        messages, key=lambda each: 0 if (each.language or "").startswith("en") else 1 if not each.language else 2
    )
    return ranked[0].value if ranked else ""


def describe_constraint(constraint: Constraint, detail: str = "") -> str:
    """Describe the rule of `constraint`. `detail`: the repeated language, for ``sh:uniqueLang``."""
    match constraint:
        case shape_model.ClassOf(_, name):
            return f"The value must be an instance of {curie(name.value)}."
        case shape_model.Datatype(_, name):
            return f"The value must be a well-formed literal of {curie(name.value)}."
        case shape_model.NodeKind(_, kind):
            return f"The value must be of the kind sh:{kind}."
        case shape_model.Count(_, least, None):
            return f"There must be at least {_count_values(least)}."
        case shape_model.Count(_, _, most):
            return f"There must be at most {_count_values(most)}."
        case shape_model.Range(_, relation, bound):
            return f"The value must be {relation} {bound.value}."
        case shape_model.Length(_, relation, length):
            return f"The value must have {'at least' if relation == '>=' else 'at most'} {length} characters."
        case shape_model.Pattern(_, pattern, flags):
            return f"The value must match {pattern!r}{f' with the flags {flags}' if flags else ''}."
        case shape_model.LanguageIn(_, ranges):
            return f"The value must have a language tag: {_join_alternatives(ranges)}."
        case shape_model.UniqueLang():
            return f"Each language must have at most one value. {detail!r} has several."
        case shape_model.Equals(_, predicate):
            return f"The values must be the same as those of {curie(predicate.value)}."
        case shape_model.Disjoint(_, predicate):
            return f"The value must not also be a value of {curie(predicate.value)}."
        case shape_model.Less(_, relation, predicate):
            return f"The value must be {relation} every value of {curie(predicate.value)}."
        case shape_model.Closed():
            return "The property is not allowed. The shape is closed."
        case shape_model.HasValue(_, value):
            return f"One of the values must be {_term_text(value)}."
        case shape_model.In(_, values):
            more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
            if len(values) == 1:
                return f"The value must be {_term_text(values[0])}."
            return f"The value must be one of {', '.join(map(_term_text, values[:_LISTED]))}{more}."
        case shape_model.Node(_, shape):
            return f"The value must conform to {_shape_name(shape)}."
        case shape_model.Combined(_, operator, shapes):
            how = {"not": "not conform to", "and": "conform to all of", "or": "conform to at least one of"}
            names = ", ".join(map(_shape_name, shapes))
            return f"The value must {how.get(operator, 'conform to exactly one of')} {names}."
        case shape_model.Qualified(_, shape, _, least, most):
            number = f"At least {_count_values(least)}" if least is not None else f"At most {_count_values(most)}"
            return f"{number} must conform to {_shape_name(shape)}."
    return f"The node must conform to {curie(constraint.component.value)}."


def _count_values(number: int | None) -> str:
    return f"{number} value" if number == 1 else f"{number} values"


def _join_alternatives(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "none is allowed"


def _shape_name(shape: shape_model.ShapeNode) -> str:
    return curie(shape.value) if isinstance(shape, NamedNode) else "a shape without a name"


def _term_text(term: Term) -> str:
    if isinstance(term, NamedNode):
        return curie(term.value)
    return term.value if isinstance(term, BlankNode) else str(term)
