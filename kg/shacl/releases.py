"""What a change of the ontology does to those who use its last release: no term is lost, no meaning changes unsaid.

The last release is kept as N-Triples in ``ontology/released``, written by `written`. What may change follows the
version of a module as Semantic Versioning has it: what breaks something raises the first number that is not 0 (2.0.0
after 1.4.2, 0.2.0 after 0.1.3), what adds something raises any number. A released term goes only when the release
before had it deprecated (owl:deprecated) with its replacement (dcterms:isReplacedBy), and that breaks something.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad, Triple

from kg.errors import InvalidInputError
from kg.shacl.report import Violation
from kg.store.protocol import Term
from kg.vocabulary import BASE, DCTERMS, OWL, RDF, RDFS, SCHEMA, SKOS, curie

_FIXED: Final = (RDF.type, RDFS.subClassOf, RDFS.subPropertyOf, OWL.disjointWith, SKOS.inScheme, SKOS.notation)
"""What a term means: neither to be taken away nor to be added to."""
_WIDENED: Final = (SCHEMA.domainIncludes, SCHEMA.rangeIncludes)
"""Where a term is used: more of it breaks nothing."""
_KEPT: Final = frozenset(
    {*_FIXED, *_WIDENED, SKOS.definition, RDFS.isDefinedBy, OWL.deprecated, DCTERMS.isReplacedBy, OWL.versionInfo}
)

Version = tuple[int, ...]
_Said = Mapping[NamedNode, Mapping[NamedNode, Collection[Term]]]


@dataclass(frozen=True, slots=True)
class _Step:
    """From the released version of a module to the present one."""

    before: Version
    after: Version

    @property
    def breaks(self) -> bool:
        """Whether the version says that something may break."""
        count = next((at for at, number in enumerate(self.before) if number), len(self.before) - 1) + 1
        return self.after[:count] > self.before[:count]

    def __str__(self) -> str:
        before, after = (".".join(map(str, version)) for version in (self.before, self.after))
        return f"the version is {after}, released was {before}"


def written(modules: Iterable[Quad | Triple]) -> str:
    """Return what is kept of a release, as N-Triples: the same text for the same statements, one to a line."""
    return "".join(sorted({f"{each.subject} {each.predicate} {each.object} .\n" for each in modules if _is_kept(each)}))


def release_faults(released: Iterable[Quad | Triple], modules: Iterable[Quad | Triple]) -> Iterator[Violation]:
    """Yield what the terms in `modules` do to those who use `released`.

    A Violation is what the version of the module does not allow, or no version does; a Warning is what breaks something
    and may, or adds something without a new version; an Info is a definition in other words.
    """
    before, after = _by_subject(released), _by_subject(modules)
    steps: dict[Term, _Step] = {
        module: _Step(_version(before, module), _version(after, module))
        for module in before
        if OWL.Ontology in before[module][RDF.type] and module in after
    }
    for module, step in steps.items():
        if step.after < step.before:
            yield Violation(module, f"The version of a module never goes back: {step}.", path=OWL.versionInfo)
    for term, said in before.items():
        if OWL.Ontology not in said[RDF.type]:
            step_of = next((steps[module] for module in said[RDFS.isDefinedBy] if module in steps), None)
            yield from _changes(term, said, after[term], step_of) if term in after else _loss(term, said, step_of)
    for term in after.keys() - before.keys():
        for step in (steps[module] for module in after[term][RDFS.isDefinedBy] if module in steps):
            if step.after == step.before:
                yield Violation(term, f"A term was added, so the version goes up: {step}.", severity="Warning")


def _loss(term: NamedNode, said: Mapping[NamedNode, Collection[Term]], step: _Step | None) -> Iterator[Violation]:
    if not said[DCTERMS.isReplacedBy]:
        yield Violation(
            term,
            "A released term is gone: keep it, with owl:deprecated true and dcterms:isReplacedBy what takes its place.",
        )
    elif step and not step.breaks:
        yield Violation(term, f"A deprecated term is gone, which breaks something, so the version goes up: {step}.")


def _changes(
    term: NamedNode,
    before: Mapping[NamedNode, Collection[Term]],
    after: Mapping[NamedNode, Collection[Term]],
    step: _Step | None,
) -> Iterator[Violation]:
    for name in (*_FIXED, *_WIDENED):
        lost, gained = set(before[name]) - set(after[name]), set(after[name]) - set(before[name])
        if lost or (gained and name in _FIXED):
            changes = [f"{verb} {_listed(terms)}" for verb, terms in (("lost", lost), ("gained", gained)) if terms]
            message = f"A released term means something else: its {curie(name.value)} {' and '.join(changes)}"
            if step is None or step.breaks:
                yield Violation(term, f"{message}.", path=name, severity="Warning")
            else:
                message += f"; that breaks something, so the version goes up: {step}."
                yield Violation(term, message, path=name)
        elif gained and step is not None and step.after == step.before:
            message = f"A term is used more widely, so the version goes up: {step}."
            yield Violation(term, message, path=name, severity="Warning")
    if set(before[SKOS.definition]) != set(after[SKOS.definition]):
        message = "A released term is defined in other words."
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
    raise InvalidInputError(f"{module}: it has no version (owl:versionInfo) of numbers, such as 1.2.0")


def _listed(terms: Iterable[Term]) -> str:
    return ", ".join(sorted(curie(term.value) if isinstance(term, NamedNode) else str(term) for term in terms))
