"""Queries made to bring an endpoint down, each with the errors that are right for it, and the data they feed on."""

# ruff: noqa: E501 -- a query that is read as one stands on one line

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.user_writes import Write
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import mint, sha256

GRAPH = mint("graph", "user", "ring")
EXAMPLE = "http://example.org/"
NODES = 2_000

OK = "ok"
TIMEOUT = "query_timeout"
MEMORY = "query_memory"
SYNTAX = "query_syntax"
INVALID = "invalid_input"
FORBIDDEN = "query_forbidden"
TOO_LARGE = "body_too_large"
CUT = "cut"
"""An answer that ended before its end, so that HTTP says it is not whole."""
STOPPED = frozenset({TIMEOUT, MEMORY})


def ring(nodes: int = NODES) -> Iterator[Quad]:
    """Yield a cyclic graph: each node points to the next four, and has a text."""

    def node(number: int) -> NamedNode:
        return NamedNode(f"{EXAMPLE}{number % nodes}")

    for number in range(nodes):
        for step in range(1, 5):
            yield Quad(node(number), NamedNode(f"{EXAMPLE}p{step % 2}"), node(number + step), GRAPH)
        yield Quad(node(number), NamedNode(f"{EXAMPLE}text"), Literal("a" * 40 + str(number)), GRAPH)


def write_ring(store: OxigraphStore) -> None:
    """Commit the cyclic graph as a user graph."""
    write = Write("local", f"PUT {GRAPH.value}", sha256(GRAPH.value), replaces=True)
    store.commit({GRAPH: list(ring())}, write.describe(store))


@dataclass(frozen=True, slots=True)
class Attack:
    """A query and the outcomes that are right: codes of errors, or `OK`. `quick`: part of the test suite."""

    name: str
    make: Callable[[], str]
    outcomes: frozenset[str]
    quick: bool = False


def _attack(name: str, text: str | Callable[[], str], *outcomes: str, quick: bool = False) -> Attack:
    made = text if callable(text) else lambda: text
    # An answer that is on its way at the deadline is cut, visibly.
    right = {*outcomes, CUT} if OK in outcomes else set(outcomes)
    return Attack(name, made, frozenset(right) or STOPPED, quick)


P = f"PREFIX e: <{EXAMPLE}> "
CROSS = "?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h"


def _doubled(times: int, function: str = "CONCAT(?x%d, ?x%d)") -> str:
    steps = " ".join(f"BIND({function % ((i,) * function.count('%d'))} AS ?x{i + 1})" for i in range(times))
    return f'SELECT (STRLEN(?x{times}) AS ?n) {{ BIND("0123456789abcdef" AS ?x0) {steps} }}'


ATTACKS: tuple[Attack, ...] = (
    # cross products
    _attack("cross product, counted", f"SELECT (COUNT(*) AS ?n) {{ {CROSS} }}", quick=True),
    _attack("cross product, asked", f"ASK {{ {CROSS} FILTER(?a = ?b && ?c = 1) }}", OK, *STOPPED),
    _attack("cross product, distinct", f"SELECT DISTINCT ?a ?d ?f ?h {{ {CROSS} FILTER(?a = ?h) }}", OK, *STOPPED),
    _attack("cross product, without end", f"SELECT * {{ {CROSS} }}", OK, quick=True),
    _attack("cross product, constructed", f"CONSTRUCT {{ ?a ?q ?f }} WHERE {{ {CROSS} }}", OK, *STOPPED),
    _attack("cross product, described", f"DESCRIBE ?a ?c ?e {{ {CROSS} }}", OK, *STOPPED),
    _attack("cross product, hashed", f"SELECT (COUNT(DISTINCT SHA512(CONCAT(STR(?a), STR(?d), STR(?f)))) AS ?n) {{ {CROSS} }}"),
    _attack("cross product of random numbers", f"SELECT (SUM(RAND()) AS ?n) {{ {CROSS} FILTER(RAND() > 0.5) }}"),
    _attack("cross product of VALUES", lambda: "SELECT (COUNT(*) AS ?n) { " + " ".join(
        f"VALUES ?v{i} {{ {' '.join(map(str, range(300)))} }}" for i in range(6)) + " }"),
    _attack("unions doubled", lambda: "SELECT (COUNT(*) AS ?n) { " + " ".join(
        f"{{ BIND({i} AS ?v{i}) }} UNION {{ BIND(-{i} AS ?v{i}) }}" for i in range(40)) + " }"),
    # path bombs on a cycle
    _attack("paths from anywhere to anywhere", P + "SELECT (COUNT(*) AS ?n) { ?a (e:p0|e:p1)* ?b . ?b (e:p0|e:p1)* ?c }", quick=True),
    _attack("paths within paths", P + "SELECT (COUNT(*) AS ?n) { ?a ((e:p0*)/(e:p1*))* ?b . ?b (e:p1/e:p0)* ?c }"),
    _attack("paths by what is not there", P + "SELECT (COUNT(*) AS ?n) { ?a (!e:none)* ?b . ?b (^(!e:none))+ ?c }"),
    _attack("paths of six steps", P + f"SELECT (COUNT(*) AS ?n) {{ ?a {'/'.join(['(e:p0|e:p1|^e:p0|^e:p1)'] * 9)} ?b }}"),
    _attack("triangles that never close", P + "SELECT (COUNT(*) AS ?n) { ?a !e:x ?b . ?b !e:x ?c . ?c !e:x ?d . ?d !e:x ?e . ?e !e:x ?f . ?f !e:x ?g . ?g !e:x ?h . ?h !e:x ?i . ?i !e:x ?j }"),
    # what must be held whole
    _attack("giant ORDER BY", "SELECT * { ?a ?p ?b . ?c ?q ?d } ORDER BY ?d ?b", quick=True),
    _attack("giant ORDER BY of what is computed", f"SELECT * {{ {CROSS} }} ORDER BY SHA1(CONCAT(STR(?a), STR(?d)))"),
    _attack("giant GROUP_CONCAT", "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?d)); separator='|') AS ?x) { ?a ?p ?b . ?c ?q ?d }", quick=True),
    _attack("giant GROUP BY", "SELECT ?a ?b ?c ?d (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d } GROUP BY ?a ?b ?c ?d"),
    _attack("giant DISTINCT", "SELECT DISTINCT ?a ?b ?c ?d { ?a ?p ?b . ?c ?q ?d } ORDER BY ?a"),
    _attack("giant MINUS", f"SELECT (COUNT(*) AS ?n) {{ ?a ?p ?b . ?c ?q ?d MINUS {{ {CROSS} }} }}"),
    _attack("EXISTS for each of many", "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d FILTER NOT EXISTS { ?x ?y ?z . ?u ?v ?w FILTER(?x = ?b && ?w = ?u) } }"),
    _attack("OPTIONAL for each of many", "SELECT (COUNT(*) AS ?n) { ?a ?p ?b . ?c ?q ?d OPTIONAL { ?e ?r ?f FILTER(STRLEN(STR(?f)) = STRLEN(STR(?b))) } }"),
    _attack("sub-SELECTs within each other", lambda: "SELECT * { " + "{ SELECT * { ?a ?p ?b . " * 20 + "?c ?q ?d . ?e ?r ?f" + " } }" * 20 + " } ORDER BY ?f", OK, *STOPPED),
    # strings that grow
    _attack("strings doubled", _doubled(45), OK, MEMORY, TIMEOUT, INVALID, quick=True),
    _attack("REPLACE that blows up", _doubled(12, 'REPLACE(?x%d, ".", ?x0)'), OK, MEMORY, TIMEOUT, INVALID, quick=True),
    _attack("REPLACE by nothing at all", _doubled(9, 'REPLACE(?x%d, "", "0123456789abcdef")'), OK, *STOPPED),
    _attack("ENCODE_FOR_URI of itself", _doubled(25, "ENCODE_FOR_URI(CONCAT('%%', ?x%d, ?x%d))".replace("%%", "\u00e9")), OK, *STOPPED),
    _attack("strings doubled for each row", P + 'SELECT (GROUP_CONCAT(?z) AS ?n) { ?a ?p ?b . ?c e:text ?t BIND(REPLACE(?t, "a", ?t) AS ?u) BIND(REPLACE(?u, "a", ?t) AS ?v) BIND(REPLACE(?v, "a", ?t) AS ?z) }'),
    # expressions
    _attack("regex of nested stars", P + 'SELECT (COUNT(*) AS ?n) { ?a e:text ?t . ?c ?q ?d FILTER(REGEX(?t, "^(((a*)*)*)*b$")) }', OK, *STOPPED, quick=True),
    _attack("regex of great counts", 'SELECT * { ?a ?p ?t FILTER(REGEX(STR(?t), "((a{1,99}){1,99}){1,99}")) }', OK, *STOPPED),
    _attack("regex made for each row", P + 'SELECT (COUNT(*) AS ?n) { ?a e:text ?t . ?c e:text ?u FILTER(REGEX(CONCAT(?t, ?u), CONCAT("(", ?t, "|", ?u, ")*b"))) }'),
    _attack("regex of a megabyte", lambda: 'ASK { ?a ?p ?t FILTER(REGEX(STR(?t), "' + "(a|b)?" * 100_000 + '")) }', OK, MEMORY, TIMEOUT, INVALID),
    # nesting
    _attack("braces", lambda: "SELECT * " + "{" * 100_000 + "}" * 100_000, SYNTAX, quick=True),
    _attack("brackets that hide in an IRI", lambda: "SELECT * { BIND(1 AS ?a) FILTER(?a <" + "(" * 50_000 + "1" + ")" * 50_000 + ">2) }", SYNTAX, quick=True),
    _attack("triples about triples", lambda: "SELECT * { " + "<< " * 9_000 + "<a:a>" + " <a:b> 1 >>" * 9_000 + " <a:b> 1 }", SYNTAX),
    _attack("a long sum", lambda: "SELECT * { BIND(" + "1+" * 200_000 + "1 AS ?x) }", MEMORY, SYNTAX, INVALID, quick=True),
    _attack("a long path", lambda: "SELECT * { ?s " + "<a:b>/" * 100_000 + "<a:b> ?o }", MEMORY, SYNTAX, INVALID, TIMEOUT),
    _attack("many negations", lambda: "SELECT * { FILTER(" + "!" * 500_000 + "true) }", MEMORY, SYNTAX, INVALID),
    _attack("many unions", lambda: "SELECT * { " + "{} UNION " * 50_000 + "{} }", OK, MEMORY, SYNTAX, INVALID, TIMEOUT),
    _attack("many optionals", lambda: "SELECT * { " + "OPTIONAL { ?s ?p ?o } " * 10_000 + "}", MEMORY, TIMEOUT, INVALID),
    _attack("many patterns", lambda: "SELECT * { " + " . ".join(f"?a{i} ?p ?a{i + 1}" for i in range(5_000)) + " }", OK, MEMORY, TIMEOUT, INVALID),
    # texts
    _attack("a query of 10 MB", lambda: "SELECT * { " + "# nothing\n" * 1_000_000 + "}", TOO_LARGE, quick=True),
    _attack("100,000 terms", lambda: "SELECT * { VALUES ?v { " + "1 " * 100_000 + "} }", OK, quick=True),
    _attack("100,000 terms, joined", lambda: "SELECT (COUNT(*) AS ?n) { VALUES ?v { " + "1 " * 100_000 + "} VALUES ?w { " + "2 " * 100_000 + "} }"),
    _attack("a megabyte of SERVICE", lambda: "SELECT * { " + "?a <SERVICE#>" * 75_000 + " }", SYNTAX, quick=True),
    _attack("a megabyte of clauses", lambda: "SELECT * { " + "SERVICE <a:b> {} " * 60_000 + "}", INVALID),
    _attack("a megabyte of half words", lambda: "SELECT * { " + "a-" * 500_000 + " }", SYNTAX),
    _attack("a megabyte of quotes", lambda: "SELECT * { " + "'''\\" * 250_000 + " }", SYNTAX),
    _attack("a megabyte of prefixes", lambda: "PREFIX a: <a:> " * 60_000 + "ASK {}", OK, SYNTAX, TIMEOUT, MEMORY),
    _attack("a megabyte of variables", lambda: "SELECT * { VALUES (" + " ".join(f"?v{i}" for i in range(100_000)) + ") {} }", OK, *STOPPED),
    _attack("a megabyte of zeros", lambda: "SELECT (1" + "0" * 900_000 + " AS ?x) {}", OK, SYNTAX, INVALID, MEMORY, TIMEOUT),
    # what is never run
    _attack("another server", "SELECT * { SERVICE SILENT <http://127.0.0.1:1/> { ?s ?p ?o } }", FORBIDDEN, quick=True),
    _attack("another server, whichever", "SELECT * { ?s ?p ?o SERVICE ?o { ?x ?y ?z } }", FORBIDDEN),
    _attack("an update", "DELETE WHERE { ?s ?p ?o }", FORBIDDEN, quick=True),
)  # fmt: skip
