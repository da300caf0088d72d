"""The released meaning of the ontology's terms: breaking changes, and ``make released``, which records a release.

A released term must not disappear, and its meaning must not change without a new version. The last release is stored as
N-Triples in ``ontology/released``. Versions of modules follow Semantic Versioning: a breaking change raises the first
number that is not 0 (2.0.0 after 1.4.2, 0.2.0 after 0.1.3), an addition raises any number. A released term may be
removed only if the previous release had deprecated it (owl:deprecated) and named its replacement
(dcterms:isReplacedBy); the removal is a breaking change.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Triple, parse

from kg import bundle
from kg.errors import InvalidInputError
from kg.shacl.report import Violation
from kg.store.protocol import Term
from kg.vocabulary import BASE, DCTERMS, OWL, RDF, RDFS, SCHEMA, SKOS, curie

MODULES: Final = sorted(bundle.folder("ontology").glob("*.ttl"))
RELEASED: Final = bundle.folder("ontology") / "released" / "terms.nt"

_FIXED: Final = (RDF.type, RDFS.subClassOf, RDFS.subPropertyOf, OWL.disjointWith, SKOS.inScheme, SKOS.notation)
"""The meaning of a term: removing or adding a value breaks it."""
_WIDENED: Final = (SCHEMA.domainIncludes, SCHEMA.rangeIncludes)
"""The use of a term: an added value breaks nothing."""
_KEPT: Final = frozenset(
    {*_FIXED, *_WIDENED, SKOS.definition, RDFS.isDefinedBy, OWL.deprecated, DCTERMS.isReplacedBy, OWL.versionInfo}
)

Version = tuple[int, ...]
_Said = Mapping[NamedNode, Mapping[NamedNode, Collection[Term]]]


@dataclass(frozen=True, slots=True)
class _Step:
    """The change from the released version of a module to the current one."""

    before: Version
    after: Version

    @property
    def breaks(self) -> bool:
        """Whether the version announces a breaking change."""
        count = next((at for at, number in enumerate(self.before) if number), len(self.before) - 1) + 1
        return self.after[:count] > self.before[:count]

    def __str__(self) -> str:
        before, after = (".".join(map(str, version)) for version in (self.before, self.after))
        return f"version {after}, released {before}"


def to_release(modules: Iterable[Quad | Triple]) -> str:
    """Write the recorded statements as sorted N-Triples, one to a line."""
    return "".join(sorted({f"{each.subject} {each.predicate} {each.object} .\n" for each in modules if _is_kept(each)}))


def find_release_faults(released: Iterable[Quad | Triple], modules: Iterable[Quad | Triple]) -> Iterator[Violation]:
    """Yield the effects of `modules` on users of the terms in `released`.

    A Violation is a change that the version of the module does not allow, or that no version allows. A Warning is an
    allowed breaking change, or an addition without a new version. An Info is a reworded definition.
    """
    before, after = _by_subject(released), _by_subject(modules)
    steps: dict[Term, _Step] = {
        module: _Step(_version(before, module), _version(after, module))
        for module in before
        if OWL.Ontology in before[module][RDF.type] and module in after
    }
    for module, step in steps.items():
        if step.after < step.before:
            yield Violation(module, f"The version of a module decreased: {step}.", path=OWL.versionInfo)
    for term, said in before.items():
        if OWL.Ontology not in said[RDF.type]:
            step_of = next((steps[module] for module in said[RDFS.isDefinedBy] if module in steps), None)
            yield from _changes(term, said, after[term], step_of) if term in after else _removal(term, said, step_of)
    for term in after.keys() - before.keys():
        for step in (steps[module] for module in after[term][RDFS.isDefinedBy] if module in steps):
            if step.after == step.before:
                message = f"A term was added without a new version: {step}. Raise the version."
                yield Violation(term, message, severity="Warning")


def _removal(term: NamedNode, said: Mapping[NamedNode, Collection[Term]], step: _Step | None) -> Iterator[Violation]:
    if not said[DCTERMS.isReplacedBy]:
        yield Violation(
            term,
            "A released term was removed. Keep it, with owl:deprecated true and dcterms:isReplacedBy its replacement.",
        )
    elif step and not step.breaks:
        yield Violation(term, f"A deprecated term was removed, a breaking change: {step}. Raise the version.")


def _changes(
    term: NamedNode,
    before: Mapping[NamedNode, Collection[Term]],
    after: Mapping[NamedNode, Collection[Term]],
    step: _Step | None,
) -> Iterator[Violation]:
    for name in (*_FIXED, *_WIDENED):
        lost, gained = set(before[name]) - set(after[name]), set(after[name]) - set(before[name])
        if lost or (gained and name in _FIXED):
            changes = [f"{verb} {_join_terms(terms)}" for verb, terms in (("lost", lost), ("gained", gained)) if terms]
            message = f"The meaning of a released term changed: its {curie(name.value)} {' and '.join(changes)}"
            if step is None or step.breaks:
                yield Violation(term, f"{message}.", path=name, severity="Warning")
            else:
                message += f", a breaking change: {step}. Raise the version."
                yield Violation(term, message, path=name)
        elif gained and step is not None and step.after == step.before:
            message = f"The use of a term was extended without a new version: {step}. Raise the version."
            yield Violation(term, message, path=name, severity="Warning")
    if set(before[SKOS.definition]) != set(after[SKOS.definition]):
        message = "The definition of a released term was reworded."
        yield Violation(term, message, path=SKOS.definition, severity="Info")


def _is_kept(triple: Quad | Triple) -> bool:
    subject = triple.subject
    return isinstance(subject, NamedNode) and subject.value.startswith(BASE) and triple.predicate in _KEPT


def _by_subject(triples: Iterable[Quad | Triple]) -> _Said:
    said: dict[NamedNode, dict[NamedNode, list[Term]]] = {}
    for triple in triples:
        if isinstance(triple.subject, NamedNode) and _is_kept(triple):
            said.setdefault(triple.subject, defaultdict(list))[triple.predicate].append(triple.object)
    return said


def _version(said: _Said, module: NamedNode) -> Version:
    for version in said[module][OWL.versionInfo]:
        if isinstance(version, Literal) and all(part.isdecimal() for part in version.value.split(".")):
            return tuple(map(int, version.value.split(".")))
    raise InvalidInputError(f"{module}: missing or invalid version (owl:versionInfo). Use numbers, such as 1.2.0.")


def _join_terms(terms: Iterable[Term]) -> str:
    return ", ".join(sorted(curie(term.value) if isinstance(term, NamedNode) else str(term) for term in terms))


def parse_modules() -> list[Quad]:
    """Parse the ontology as it is now."""
    return [quad for path in MODULES for quad in parse(path=path)]


if __name__ == "__main__":
    RELEASED.write_text(to_release(parse_modules()), encoding="utf-8")
    sys.stdout.write(f"wrote {RELEASED.name}\n")
