"""Tool that describes the schema in levels: domains and classes, one class with its properties, one property."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final
from typing import Literal as OneOf

from pydantic import BaseModel, Field
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from kg.knowledge_graph import KnowledgeGraph
from kg.ontology import Constraint, Shape, get_objects, get_parents, load_code_lists, load_modules, load_shapes
from kg.provenance.catalog import MEANINGS
from kg.retrieval.property_names import find_property
from kg.retrieval.reader import Reader, bounded, list_user_graphs
from kg.retrieval.result_cells import written
from kg.retrieval.results import (
    MOST_SKIPPED,
    Completeness,
    Identifier,
    Layout,
    Lean,
    MaxTokens,
    Offset,
    Result,
    clipped,
    tokens_of,
)
from kg.sparql.measured_schema import ClassUse, PropertyUse, Schema
from kg.sparql.schema_index import local_name
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.text import quoted
from kg.tools.schema.schema_measurement import UNMEASURED
from kg.tools.schema.term_index import (
    IN_CATALOG,
    TermIndex,
    describe_foreign,
    get_term_index,
    split_words,
    to_query_name,
)
from kg.vocabulary import PREFIXES, RDF, SCHEMA

ABOUT_CHARACTERS: Final = 160
EXAMPLE_CHARACTERS: Final = 90
CODES_SHOWN: Final = 12
"""Codes listed per property of a class; the description of the property lists all."""
NOTE_TOKENS: Final = 45
"""Tokens of the note on truncation."""
STANDARDS: Final = "standards"
"""Domain of the classes of other vocabularies."""

CODES_IN_DATA: Final = "SELECT DISTINCT ?code WHERE { ?thing $property ?code FILTER(isIRI(?code)) } LIMIT 2000"


class ClassLine(BaseModel):
    """One class in the overview."""

    name: str
    things: int
    about: str


class Domain(BaseModel):
    """A module of the ontology with its classes."""

    name: str
    title: str
    things: int
    classes: list[ClassLine]


class PropertyLine(Lean):
    """The use of a property by a class. Unknown fields are absent."""

    name: str
    values: str = Field(description="Datatypes, languages or classes of the values")
    per_thing: str = Field(description="Values per instance by the shapes, and number of instances with a value")
    about: str | None = None
    rule: str | None = Field(None, description="Further constraints of the shapes")
    codes: list[str] | None = Field(None, description="Codes of the values; see code_iri")
    code_iri: str | None = None
    example: str | None = Field(None, description="One value, as a SPARQL term")


class UsedBy(BaseModel):
    """A class that uses the property."""

    name: str
    triples: int
    things: int
    values: str
    per_thing: str


class SchemaResult(Result):
    """One level: `domains`, a class with its `properties`, or a property with the classes of `used_by`."""

    layout: ClassVar[Layout] = Layout(paged=("domains", "properties", "used_by"))

    level: OneOf["domains", "class", "property"]
    iri: str | None = None
    name: str | None = None
    label: str | None = None
    definition: str | None = None
    specializes: list[str] | None = None
    things: int | None = None
    triples: int | None = None
    example: str | None = None
    rules: list[str] | None = None
    domains: list[Domain] | None = None
    properties: list[PropertyLine] | None = None
    used_by: list[UsedBy] | None = None
    codes: list[str] | None = None
    code_iri: str | None = None
    query: str | None = Field(None, description="SPARQL to start from")


def describe_schema(
    kg: KnowledgeGraph,
    term: Annotated[Identifier | None, Field(description="Class or property: IRI, prefixed name or label")] = None,
    max_tokens: MaxTokens = 2_000,
    offset: Offset = 0,
) -> SchemaResult:
    """Describe the measured schema: domains and classes without a term, else one class or property.

    Use before writing SPARQL. A class has its properties, most used first, with values, cardinality, codes, rules,
    example, and a query. A property has the classes that use it. Next page: offset=next_offset.
    Example: describe_schema(term="kg:Passage").
    Next: `sparql_examples` for a query like yours, then `sparql`.
    """
    bounded("max_tokens", max_tokens, 200, 50_000)
    bounded("offset", offset, 0, MOST_SKIPPED)
    terms = get_term_index(kg)
    # On the state that was measured, so that queries give the counts.
    with kg.reading(terms.schema.generation or None, or_newest=True):
        return _describe(Reader(kg), terms, term, max_tokens, offset)


def _describe(reader: Reader, terms: TermIndex, term: str | None, max_tokens: int, offset: int) -> SchemaResult:
    if term is None or not term.strip():
        result = _describe_domains(terms.schema)
    else:
        entry = terms.resolve(term, ("class", "property"))
        result = (
            _describe_class(terms, entry.iri) if entry.kind == "class" else _describe_property(reader, terms, entry.iri)
        )
        result.label = entry.label
        result.definition = entry.about
        used = terms.schema.classes[entry.iri].properties if entry.iri in terms.schema.classes else ()
        if listed := list_user_graphs(reader.kg, {entry.iri, *used}):
            result.notes.append(f"Counts and examples include statements of users, not of sources, from {listed}.")
    if not terms.schema.generation:
        result.notes.append("The schema is being measured for the first time. Counts and values are not available yet.")
    elif terms.schema.generation != reader.kg.store.statistics().generation:
        result.notes.append(
            f"Counts and values are those of generation {terms.schema.generation}, measured at "
            f"{terms.schema.measured_at}. Commits since then are not counted yet."
        )
    total, following = _cut(result, max_tokens, offset)
    completeness: Completeness = "truncated" if following is not None else "complete"
    return reader.finish(result, total=total, next_offset=following, completeness=completeness)


def _describe_domains(schema: Schema) -> SchemaResult:
    of: dict[str, list[ClassLine]] = {}
    unused = [term.iri for term in schema.terms.values() if term.kind == "class" and term.iri not in schema.classes]
    for iri, use in schema.classes.items():
        term = schema.terms.get(iri)
        about = clipped(
            (term.definition if term else None)
            or MEANINGS.get(NamedNode(iri))
            or describe_foreign(iri, split_words(local_name(iri))),
            ABOUT_CHARACTERS,
        )
        line = ClassLine(name=to_query_name(iri), things=use.entities, about=about)
        of.setdefault((term.domain if term else None) or STANDARDS, []).append(line)
    titles = {name: title for name, (title, _) in load_modules().items()} | {STANDARDS: "Classes of other vocabularies"}
    domains = [
        Domain(name=name, title=titles.get(name, name), things=sum(line.things for line in lines), classes=lines)
        for name, lines in sorted(of.items(), key=_order_of_domain)
    ]
    triples = schema.triples if schema.generation else None
    result = SchemaResult(level="domains", triples=triples, domains=domains)
    if unused and schema.generation:
        result.notes.append(f"Declared classes without instances: {', '.join(map(to_query_name, sorted(unused)))}.")
    result.notes.append(
        "Predefined prefixes: " + ", ".join(sorted(PREFIXES)) + ". The default graph is the union of all graphs. "
        "GRAPH ?g { } selects one, and graph/prov contains the source of each."
    )
    return result


def _order_of_domain(item: tuple[str, list[ClassLine]]) -> tuple[bool, int]:
    """Order the domains of the ontology by size. Those of other vocabularies, which have few texts, come last."""
    name, lines = item
    return name == STANDARDS, -sum(line.things for line in lines)


def _describe_class(terms: TermIndex, iri: str) -> SchemaResult:
    schema = terms.schema
    use = schema.classes.get(iri) or ClassUse(iri, 0, {})
    shape = load_shapes().get(iri, Shape())
    unused = [path for path in shape.properties if path not in use.properties]
    entities = use.entities if schema.generation else None
    lines = [
        _line(terms, path, use.properties.get(path), shape.properties.get(path), entities, iri)
        for path in [*use.properties, *unused]
        if path != RDF.type.value
    ]
    rules = [f"IRIs match {shape.pattern}"] if shape.pattern else []
    if shape.closed:
        rules.append("No other properties are allowed.")
    return SchemaResult(
        level="class",
        iri=iri,
        name=to_query_name(iri),
        specializes=[to_query_name(parent) for parent in get_parents(iri)] or None,
        things=entities,
        example=use.example,
        rules=rules or None,
        properties=lines,
        query=_class_query(iri, use),
    )


def _line(
    terms: TermIndex,
    path: str,
    use: PropertyUse | None,
    constraint: Constraint | None,
    entities: int | None,
    of: str,
) -> PropertyLine:
    term = terms.schema.terms.get(path)
    about = term.definition if term else MEANINGS.get(NamedNode(path)) if of in IN_CATALOG else None
    if about is None and constraint is not None and constraint.messages:
        about = constraint.messages[0]
    entry = terms.get(f"<{path}>")
    if about is None and entry is not None and (wikibase := find_property(path)) is not None:
        about = f"{entry.label}: {wikibase[1]}"
    codes = [local_name(code.iri) for code in load_code_lists().get((constraint and constraint.scheme) or "", ())]
    rest = len(codes) - CODES_SHOWN
    return PropertyLine(
        name=to_query_name(path),
        values=_values(use, constraint, path),
        per_thing=_per_thing(use, constraint, entities),
        about=clipped(about, ABOUT_CHARACTERS) if about else None,
        rule=_rule(constraint),
        codes=[
            *codes[:CODES_SHOWN],
            *([f"... {rest} more: describe_schema({quoted(to_query_name(path))})"] if rest > 0 else []),
        ]
        or None,
        code_iri=f"<{constraint.scheme}/CODE>" if constraint and constraint.scheme else None,
        example=_example(use),
    )


def _values(use: PropertyUse | None, constraint: Constraint | None, path: str) -> str:
    """Describe the values of a property in a few words: as measured, or as declared if there are none."""
    parts: Counter[str] = Counter()
    if use is not None:
        for datatype, count in use.datatypes.items():
            name = to_query_name(datatype)
            if datatype == RDF.langString.value:
                tags = sorted(use.languages, key=lambda tag: -use.languages[tag])
                name = "text in " + ", ".join(f"@{tag}" for tag in tags[:6]) + (" ..." if len(tags) > 6 else "")
            parts[name] += count
        for name, count in use.classes.items():
            listed = constraint is not None and constraint.scheme is not None
            parts[to_query_name(name) if name else "codes" if listed else "IRIs of no class"] += count
    if parts:
        several = len(parts) > 1
        return ", ".join(f"{name} ({count:,})" if several else name for name, count in parts.most_common(6))
    wanted = [
        *(constraint.datatypes + constraint.classes if constraint else ()),
        *get_objects(path, SCHEMA.rangeIncludes),
    ]
    return ", ".join(to_query_name(name) for name in dict.fromkeys(wanted)) or "IRIs"


def _per_thing(use: PropertyUse | None, constraint: Constraint | None, entities: int | None) -> str:
    """Describe the number of values in a few words: as declared, and as measured unless `entities` is unknown."""
    words = [constraint.cardinality] if constraint is not None else []
    subjects = use.subjects if use is not None else 0
    if entities is None:
        return "; ".join(words)
    if not entities:
        words.append("not used yet")
    elif subjects == entities:
        words.append("all have it")
    else:
        words.append(f"{subjects:,} of {entities:,} have it")
    if use is not None and subjects and use.triples > subjects and (constraint is None or constraint.most != 1):
        words.append(f"{use.triples / subjects:.1f} each")
    return "; ".join(words)


def _rule(constraint: Constraint | None) -> str | None:
    if constraint is None:
        return None
    parts = []
    if constraint.pattern and not constraint.scheme:
        parts.append(f"matches {constraint.pattern}")
    if constraint.lowest is not None:
        parts.append(f"at least {constraint.lowest}")
    if constraint.values:
        parts.append("one of " + ", ".join(constraint.values))
    return "; ".join(parts) or None


def _example(use: PropertyUse | None) -> str | None:
    if use is None or use.example is None:
        return None
    [quad] = parse(f"<urn:s> <urn:p> {use.example} .", format=RdfFormat.N_TRIPLES)
    value = quad.object
    if isinstance(value, Literal) and len(value.value) > EXAMPLE_CHARACTERS:
        return written(Literal(clipped(value.value, EXAMPLE_CHARACTERS), language=value.language))
    return written(value)


def _class_query(iri: str, use: ClassUse) -> str:
    """Build a query for some instances of a class with the properties that nearly all of them have."""
    paths = [
        path
        for path, used in use.properties.items()
        if path != RDF.type.value and used.subjects * 10 >= use.entities * 9 and used.triples == used.subjects
    ][:4]
    names = {path: _variable(path) for path in paths}
    body = "".join(f" ;\n    {to_query_name(path)} ?{name}" for path, name in names.items())
    return f"SELECT * WHERE {{\n  ?{_variable(iri)} a {to_query_name(iri)}{body}\n}} LIMIT 10"


def _variable(iri: str) -> str:
    name = "".join(letter for letter in local_name(iri) if letter.isascii() and (letter.isalnum() or letter == "_"))
    return (name[:1].lower() + name[1:]) if name and not name[0].isdigit() else "thing"


def _describe_property(reader: Reader, terms: TermIndex, iri: str) -> SchemaResult:
    schema = terms.schema
    use = schema.properties.get(iri)
    constraints = {name: shape.properties.get(iri) for name, shape in load_shapes().items()}
    used_by = [
        UsedBy(
            name=to_query_name(name),
            triples=of.properties[iri].triples,
            things=of.properties[iri].subjects,
            values=_values(of.properties[iri], constraints.get(name), iri),
            per_thing=_per_thing(of.properties[iri], constraints.get(name), of.entities),
        )
        for name, of in schema.classes.items()
        if iri in of.properties and not of.inferred
    ]
    used_by.sort(key=lambda line: -line.triples)
    ruled = {name: constraint for name, constraint in constraints.items() if constraint is not None}
    rules = [
        f"{to_query_name(name)}: {text}"
        for name, each in ruled.items()
        for text in (*each.messages, _rule(each))
        if text
    ]
    scheme = next((each.scheme for each in ruled.values() if each.scheme), None)
    codes = _codes(reader, iri, scheme) if scheme else None
    subject = used_by[0].name if used_by else None
    typed = f"?thing a {subject} ; " if subject else "?thing "
    unused = 0 if schema.generation and iri not in UNMEASURED else None
    return SchemaResult(
        level="property",
        iri=iri,
        name=to_query_name(iri),
        specializes=[to_query_name(parent) for parent in get_parents(iri)] or None,
        triples=use.triples if use else unused,
        things=use.subjects if use else unused,
        example=_example(use),
        rules=rules or None,
        used_by=used_by,
        codes=codes,
        code_iri=f"<{scheme}/CODE>" if scheme else None,
        query=f"SELECT ?thing ?value WHERE {{ {typed}{to_query_name(iri)} ?value }} LIMIT 10",
    )


def _codes(reader: Reader, iri: str, scheme: str) -> list[str]:
    """List the codes of a property: those of the ontology with definitions, then others that the data uses."""
    known = load_code_lists().get(scheme, ())
    lines = [f"{local_name(code.iri)}: {clipped(code.definition or code.label, ABOUT_CHARACTERS)}" for code in known]

    def read(rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return sorted(term_text(row["code"]).removeprefix(f"{scheme}/") for row in rows)

    used = reader.kept("codes in use", bind(CODES_IN_DATA, property=NamedNode(iri)), read)
    listed = {code.iri.removeprefix(f"{scheme}/") for code in known}
    return [*lines, *(code for code in used if code not in listed)]


def _cut(result: SchemaResult, most: int, offset: int) -> tuple[int | None, int | None]:
    """Cut the list of a level to the lines from `offset` on that fit in `most` tokens.

    Returns the total number of lines and the next offset. Truncation is noted.
    """
    max_tokens = most - NOTE_TOKENS
    if result.domains is not None:
        lines = [(domain, line) for domain in result.domains for line in domain.classes]
        empty = [domain.model_copy(update={"classes": []}) for domain in result.domains]
        spare = max_tokens - tokens_of(result.model_copy(update={"domains": empty}))
        end = _find_end([line for _, line in lines], spare, offset)
        kept = {id(line) for _, line in lines[offset:end]}
        for domain in result.domains:
            domain.classes = [line for line in domain.classes if id(line) in kept]
        result.domains = [domain for domain in result.domains if domain.classes]
        return _note_cut(result, "classes", len(lines), offset, end)
    listed: list[Any] | None = result.properties if result.properties is not None else result.used_by
    name = "properties" if result.properties is not None else "used_by"
    if listed is None:
        return None, None
    bare = result.model_copy(update={name: []})
    if tokens_of(bare) > max_tokens * 2 // 3:
        for field in ("rules", "codes"):
            values = getattr(result, field)
            if values and tokens_of(values) > max_tokens // 4:
                kept_values = values[: _find_end(values, max_tokens // 4, 0)]
                result.notes.append(f"{len(kept_values)} of {len(values)} {field} are shown. Raise max_tokens.")
                setattr(result, field, kept_values)
        bare = result.model_copy(update={name: []})
    end = _find_end(listed, max_tokens - tokens_of(bare), offset)
    setattr(result, name, listed[offset:end])
    return _note_cut(result, "properties" if name == "properties" else "classes", len(listed), offset, end)


def _find_end(lines: Sequence[Any], tokens: int, offset: int) -> int:
    """Find the end of the lines from `offset` on that fit in `tokens`, at least one line."""
    end, used = offset, 0
    for line in lines[offset:]:
        used += tokens_of(line)
        if used > tokens and end > offset:
            break
        end += 1
    return end


def _note_cut(result: SchemaResult, what: str, total: int, offset: int, end: int) -> tuple[int, int | None]:
    following = end if end < total else None
    if following is not None:
        result.notes.append(
            f"Truncated to max_tokens: {what} {offset + 1} to {end} of {total}. Next page: offset={end}. A larger "
            "max_tokens returns more."
        )
    return total, following
