"""No query that passes the guard makes Oxigraph send a request; no harmless query is refused."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyoxigraph import Store

from kg.errors import QueryForbiddenError, QuerySyntaxError
from kg.sparql.guard import build_syntax_error, check_query, check_update, has_dataset_clause, query_form
from kg.sparql.lexer import escape_inner_dots
from tests.examples import dear


@dataclass
class Listener:
    """Something on loopback that counts who comes and hangs up."""

    port: int = 0
    hits: list[bytes] = field(default_factory=list)

    def evaluate(self, query: str) -> int:
        """Run `query` in Oxigraph itself, without a guard; return how many requests it sent."""
        before = len(self.hits)
        try:
            result = Store().query(query, prefixes={"l": f"http://127.0.0.1:{self.port}/"})
            if not isinstance(result, bool) and hasattr(result, "__next__"):
                for _ in result:
                    pass
        except (SyntaxError, OSError, RuntimeError, ValueError):
            pass
        return len(self.hits) - before

    def execute(self, update: str) -> int:
        """Run `update` in Oxigraph itself, without a guard; return how many requests it sent."""
        before = len(self.hits)
        with contextlib.suppress(SyntaxError, OSError, RuntimeError, ValueError):
            Store().update(update, prefixes={"l": f"http://127.0.0.1:{self.port}/"})
        return len(self.hits) - before


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    state = Listener()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            state.hits.append(self.rfile.readline())
            self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield state
        server.shutdown()


def passes(query: str, check: Callable[[str], object] = check_query) -> bool:
    try:
        check(query)
    except (QueryForbiddenError, QuerySyntaxError):
        return False
    return True


URL = "<URL>"
# Each of these was seen to reach the listener when it is given to Oxigraph without the guard.
REACHING = [
    "SELECT * { SERVICE <URL> { ?s ?p ?o } }",
    "SELECT * { service <URL> {} }",
    "SELECT*{SERVICE<URL>{}}",
    "SELECT * { SERVICE SILENT <URL> {} }",
    "SELECT*{SERVICESILENT<URL>{}}",
    "PREFIX : <URL> SELECT*{SERVICE:x{}}",
    "PREFIX : <URL> SELECT*{SERVICE:{}}",
    "SELECT*{SERVICEl:x{}}",
    "SELECT*{SERVICESILENTl:x{}}",
    "SELECT * { ?s ?p trueSERVICE<URL>{} }",
    "SELECT * { ?s ?p 1SERVICE<URL>{} }",
    "SELECT * { ?s ?p 1.5e3SERVICE<URL>{} }",
    'SELECT * { ?s ?p "a"SERVICE<URL>{} }',
    "SELECT * { ?s ?p trueSERVICEl:x{} }",
    "SELECT * { SERVICE # c\n <URL> # {\n {} }",
    "PREFIX SERVICE: <a:b> PREFIX : <URL> SELECT*{SERVICE:a {}}",
    f"PREFIX {'a' * 70}: <URL> SELECT * {{ SERVICE {'a' * 70}:x {{}} }}",
    f"PREFIX {'a-.' * 70}b: <URL> SELECT * {{ SERVICESILENT{'a-.' * 70}b:x {{}} }}",
    "ASK { SERVICE <URL> {} }",
    "CONSTRUCT { ?s ?p ?o } { SERVICE <URL> { ?s ?p ?o } }",
    "DESCRIBE ?s { SERVICE <URL> { ?s ?p ?o } }",
    "SELECT * { FILTER EXISTS { SERVICE <URL> {} } }",
    "SELECT * { OPTIONAL { SERVICE <URL> {} } }",
    "SELECT * { { SELECT * { SERVICE <URL> {} } } }",
    "SELECT * { ?s ?p '''SERVICE''' SERVICE <URL> {} }",
    # What a tokenizer by longest match takes for an IRI is less-than here, and the rest of the line a comment.
    'SELECT * { BIND(1 AS ?a) FILTER(?a <2)#>"""\n SERVICE <URL> {} #"""\n}',
    "PREFIX e: <URL> SELECT * { BIND(1 AS ?a) FILTER(?a <2)SERVICE e:x#>\n{} }",
    # No long string, since \\uD800 is no character: an empty string, a string, and then a clause.
    "SELECT * { VALUES ?x { '''x' } SERVICE <URL> {} #\\uD800'''\n }",
    "SELECT * { VALUES ?x { '''x' } SERVICE <URL> {} #\\q'''\n }",
]


@pytest.mark.parametrize("query", REACHING)
def test_what_reaches_another_server_is_refused(query: str, listener: Listener) -> None:
    query = query.replace("URL", f"http://127.0.0.1:{listener.port}/")
    assert listener.evaluate(query) > 0, "the example proves nothing: Oxigraph sends no request for it"
    assert not passes(query)


def test_a_variable_as_service_is_refused_too() -> None:
    assert not passes("SELECT * { VALUES ?s { <http://127.0.0.1/> } SERVICE ?s {} }")


HARMLESS = [
    "SELECT ?service { ?service <http://example.org/service> $SERVICE }",
    "PREFIX ex: <http://example.org/service#> SELECT * { ?s ex:service ex:SERVICE }",
    'SELECT * { ?s ?p "SERVICE <http://example.org/> {}" } # SERVICE <http://example.org/> {}',
    "SELECT * { ?s ?p '''\nSERVICE <http://example.org/> {}\n''' }",
    'SELECT * { ?s ?p """a "SERVICE <http://example.org/> {}" """ }',
    "SELECT * { ?s ?p _:SERVICE . ?s ?p 'a'@en-service }",
    "PREFIX service: <http://example.org/> SELECT * { service:a service:b service:c . ?s a service:d }",
    "PREFIX service: <http://example.org/> SELECT * { GRAPH service:g { ?s ?p ?o } }",
    "PREFIX service: <http://example.org/> SELECT * FROM service:g { ?s ?p ?o }",
    "PREFIX load: <http://example.org/> SELECT * { ?load load:insert load:delete }",
    "PREFIX e: <http://example.org/> SELECT * { VALUES (?a ?b) { (e:x <http://example.org/service#x>) } ?a ?b ?c }",
    "PREFIX  s:  <http://example.org/service#>\nPREFIX t: <http://example.org/#>\nASK { s:x ?p <http://e/service#b> }",
    "SELECT * { ?s ?p 'It\\'s a SERVICE { call }' ; <http://example.org/it's#> 1 }",
    "SELECT * { FILTER(?a <?b && ?c> 'SERVICE <a:b> {}') }",
]


@pytest.mark.parametrize("query", HARMLESS)
def test_harmless_queries_that_speak_of_services_pass(query: str) -> None:
    assert check_query(query) in ("SELECT", "ASK")


FRAGMENTS = st.sampled_from(
    ["SERVICE", "service", "SILENT", "SERVICESILENT", "trueSERVICE", "1SERVICE", "<URL>", "<URL#a>", "SERVICE:x", "l:x",
     ":x", "?x", "{}", "{", "}", "(", ")", "?a <2)#>", "?a <'>", "'", '"', "'''", '"""', "\\q", "\\uD800", "\\'", "#",
     "\n", " ", ".", ",", ";", "1", "true", "'x'", "''", '""', "FILTER(", "FILTER(?x <1)", "BIND(", " AS ?b)",
     "VALUES ?v {", "(1 <a:b>)", "GRAPH", "OPTIONAL{", "?s ?p ", "@en", "@en--ltr", "^^", "<", ">", "_:b", "e:a\\#"]
)  # fmt: skip
FRAMES = st.sampled_from(
    ["PREFIX : <URL> PREFIX e: <e:> SELECT * { %s }", "BASE <URL> SELECT * { %s }", "SELECT * { ?s ?p ( %s ) }",
     "SELECT * { VALUES ?v { %s } }", "PREFIX SERVICE: <e:> PREFIX : <URL> ASK { BIND(1 AS ?a) FILTER(?a %s }"]
)  # fmt: skip


@settings(max_examples=dear(500), suppress_health_check=[HealthCheck.filter_too_much])
@given(FRAMES, st.lists(FRAGMENTS, max_size=9).map("".join), st.sampled_from(REACHING), st.integers(0, 200))
@example("BASE <URL> SELECT * { %s }", "SERVICE<x>{}", REACHING[0], 0)
def test_nothing_that_passes_reaches_another_server(
    listener: Listener, frame: str, body: str, reaching: str, cut: int
) -> None:
    """Random sentences in which clauses may hide, and known ways out with random text put into them."""
    url = f"http://127.0.0.1:{listener.port}/"
    for query in (frame % body, reaching[:cut] + body + reaching[cut:]):
        query = query.replace("URL", url)
        if passes(query):
            assert listener.evaluate(query) == 0, query


LOADING = [
    "LOAD <URL>",
    "load silent <URL> into graph <a:b>",
    "LOADSILENT<URL>",
    "LOAD<URL>",
    "LOADl:x",
    "LOADSILENTl:x",
    "PREFIX : <URL> LOAD:x",
    "PREFIX LOAD: <a:b> PREFIX : <URL> LOAD :x",
    "BASE <URL>LOAD <x>",
    "INSERT DATA { <a:a> <a:b> 1 };LOAD<URL>",
    "# LOAD\nCLEAR ALL ; # ;\n LOAD # <a:b>\n <URL>",
    f"PREFIX {'a' * 99}: <URL> LOAD{'a' * 99}:x",
    "INSERT { ?s ?p ?o } WHERE { SERVICE <URL> { ?s ?p ?o } }",
    "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o } ; INSERT { ?s ?p ?o } WHERE { GRAPH ?g { SERVICESILENTl:x {} } }",
    "INSERT { <a:a> <a:b> ?a } WHERE { BIND(1 AS ?a) FILTER(?a <2)#>\n} ; LOAD <URL> #>\n",
    "INSERT DATA { <a:a> <a:b> '' } ; LOAD <URL> #\\uD800'''",
]


@pytest.mark.parametrize("update", LOADING)
def test_what_an_update_fetches_is_refused(update: str, listener: Listener) -> None:
    update = update.replace("URL", f"http://127.0.0.1:{listener.port}/")
    assert listener.execute(update) > 0, "the example proves nothing: Oxigraph sends no request for it"
    with pytest.raises(QueryForbiddenError, match=r"(SERVICE|LOAD) at line \d+"):
        check_update(update)


@pytest.mark.parametrize(
    "update",
    ["PREFIX load: <http://e/> INSERT DATA { load:a load:b load:c ; load:d 'LOAD <a:b>' . <a:b> load:p _:LOAD }",
     "PREFIX load: <http://e/> INSERT DATA { GRAPH load:g { <http://e/#x> load:p <http://e/#load> } }",
     "PREFIX load: <http://e/> WITH load:g DELETE { ?s ?p ?o } USING load:h USING NAMED load:i WHERE { ?load ?p ?o }",
     "PREFIX load: <http://e/> CLEAR GRAPH load:g ; DROP SILENT GRAPH load:h ; MOVE load:a TO load:b # LOAD <a:b>",
     "PREFIX load: <http://e/> COPY load:a TO load:b ; ADD load:a TO load:b ; CREATE GRAPH load:c",
     "INSERT DATA { <a:a> <a:b> \"\"\" ; LOAD <http://e/> \"\"\" }",
     "INSERT { ?s ?p 1 } WHERE { ?service <http://e/service> $load }"],
)  # fmt: skip
def test_harmless_updates_that_speak_of_loading_pass(update: str) -> None:
    check_update(update)
    with contextlib.suppress(RuntimeError):  # there are no such graphs
        Store().update(update)


UPDATE_FRAGMENTS = st.sampled_from(
    ["LOAD", "load", "LOADSILENT", "SILENT", "<URL>", "LOAD:x", "LOADl:x", "l:x", ":x", " INTO GRAPH <a:b>", ";", "; ",
     "{", "}", "INSERT DATA {", "INSERT {", "DELETE WHERE {", "} WHERE {", "<a:a> <a:b> 1 .", "?s ?p ?o .", "CLEAR ALL",
     "PREFIX LOAD: <a:b> ", "PREFIX : <URL> ", "BASE <URL>", "SERVICE <URL> {}", "SERVICEl:x{}", "FILTER(?a <2)#>",
     "'", '"', "'''", '"""', "\\q", "\\uD800", "#", "\n", " ", "GRAPH ", "WITH ", "USING "]
)  # fmt: skip


@settings(max_examples=dear(500), suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(UPDATE_FRAGMENTS, max_size=9).map("".join), st.sampled_from(LOADING), st.integers(0, 99))
def test_no_update_that_passes_fetches_anything(listener: Listener, body: str, loading: str, cut: int) -> None:
    """Random sentences in which operations may hide, and known ways out with random text put into them."""
    url = f"http://127.0.0.1:{listener.port}/"
    for update in (body, "PREFIX : <URL> " + body, loading[:cut] + body + loading[cut:]):
        update = update.replace("URL", url)
        if passes(update, check_update):
            assert listener.execute(update) == 0, update


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("SELECT * {}", "SELECT"),
        ("# c\nPREFIX ex: <http://e/#> BASE <http://e/> ask {}", "ASK"),
        ("PREFIX a-b: <a:b>prefix :<a:> sElect?x{}", "SELECT"),
        ("PREFIX a.b: <a:b> SELECT(1 AS ?x){}", "SELECT"),
        ("PREFIX é: <a:b> DESCRIBE <a:b>", "DESCRIBE"),
        ("SELECT: {}", "SELECT"),
        ("PREFIXex:<http://e/>CONSTRUCTWHERE{}", "CONSTRUCT"),
        ('VERSION "1.2" DESCRIBE <a:b>', "DESCRIBE"),
        ("SELECTDISTINCT?x{}", "SELECT"),
        ("INSERTDATA{}", "INSERT"),
        ("", None),
        ("{}", None),
        ("SELEC * {}", None),
    ],
)
def test_the_form_is_the_first_keyword_after_the_prologue(text: str, form: str | None) -> None:
    assert query_form(text) == form


@pytest.mark.parametrize(
    "update",
    ["INSERT DATA { <a:a> <a:b> 1 }", "PREFIX e: <e:> DELETE WHERE { ?s ?p ?o }",
     "LOAD <http://127.0.0.1/>", "CLEAR ALL",
     "DROP ALL", "CREATE GRAPH <a:b>", "COPY DEFAULT TO <a:b>", "MOVE DEFAULT TO <a:b>", "ADD DEFAULT TO <a:b>",
     "WITH <a:b> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", "# c\nloAd <http://127.0.0.1/>"],
)  # fmt: skip
def test_updates_are_refused_as_such(update: str) -> None:
    with pytest.raises(QueryForbiddenError, match="is an update"):
        check_query(update)


def test_a_refusal_says_where_and_what_to_do() -> None:
    with pytest.raises(QueryForbiddenError, match="line 2, column 3"):
        check_query("SELECT * {\n  SERVICE <a:b> {} }")
    with pytest.raises(QueryForbiddenError, match=r"'service:o'.*keyword SERVICE"):
        check_query("PREFIX service: <a:b> SELECT * { ?s ?p service:o { ?a ?b ?c } }")


def test_lone_surrogates_and_deep_nesting_never_reach_a_parser() -> None:
    with pytest.raises(QuerySyntaxError, match=r"line 1, column 16: .*U\+D800"):
        check_query("SELECT * { ?s <\ud800> ?o }")
    for check in (check_query, check_update):
        with pytest.raises(QuerySyntaxError, match=r"U\+D800"):
            check("SELECT * { ?s <\ud800> ?o }")


DEEP = [
    "SELECT * " + "{" * 300 + "}" * 300,
    "SELECT * { BIND(" + "(" * 300 + "1" + ")" * 300 + " AS ?x) }",
    # One token by longest match, and to the parser an expression.
    "SELECT * { BIND(1 AS ?a) FILTER(?a <" + "(" * 300 + "1" + ")" * 300 + ">2) }",
    "SELECT * { FILTER(" + "?a <((1>0&&" * 200 + "1" + "))" * 200 + ") }",
    "SELECT * { " + "<< " * 300 + "<a:a>" + " <a:b> 1 >>" * 300 + " <a:b> 1 }",
    "SELECT * { ?s ?p " + "<<( <a:a> <a:b> " * 300 + "1" + ")>>" * 300 + " }",
]


@pytest.mark.parametrize("query", DEEP, ids=range(len(DEEP)))
def test_deep_nesting_never_reaches_a_parser(query: str) -> None:
    for check in (check_query, check_update):
        with pytest.raises(QuerySyntaxError, match="256"):
            check(query)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    check_query("SELECT * { VALUES (?a ?b) {" + "(<urn:x(a)> <a:b[c]>)" * 1_000 + "} " + "{} " * 300 + "}")


@pytest.mark.parametrize(
    ("query", "line", "column", "what"),
    [
        ("SELEC * {}", 1, 1, "SELECT, ASK, CONSTRUCT or DESCRIBE"),
        ("SELECT * {\n  ?s ?p ?o ?x }", 2, 12, "'?x'"),
        ("SELECT * { ?s ?p ?o", 1, 20, "end of the query"),
        ("SELECT * { ?s ?p }", 1, 18, "'}': expected a value after the property"),
        ("SELECT * {\n ?s ?p \n}", 3, 1, "'}': expected a value after the property"),
        ("SELECT * { ?s }", 1, 15, "'}': expected a property and a value after the subject"),
        ("SELECT * { ?a a ?b , ?c ; ?s . }", 1, 30, "'.': expected a value after the property"),
        ('SELECT * { ?a a ?b . ?c ?p "x"@en ; ?q }', 1, 40, "'}': expected a value after the property"),
        ("SELECT * { { ?s ?p ?o } UNION { ?s ?p } }", 1, 39, "'}': expected a value after the property"),
        ("SELECT * { ?s a <urn:c> ?s ?p ?o }", 1, 25, "'?s': is a '.', ';' or '}' missing before it"),
        ("SELECT * { ?s ?p ?o FILTR(?o > 3) }", 1, 21, "'FILTR': is a '.', ';' or '}' missing before it, or a keyword"),
        ("SELECT *\n{ xyzzy:a ?p ?o }", 2, 3, "undeclared prefix xyzzy:. Add PREFIX xyzzy: <...>"),
        ("SELECT * { dcterm:a ?p ?o }", 1, 12, "Did you mean dcterms:"),
        ("SELECT * { ?s SKOS:prefLabel ?o }", 1, 15, "Did you mean skos:"),
        ("PREFIX wiki: <a:> SELECT * { ?s wikis:a ?o }", 1, 33, "Did you mean wiki:?"),
        ("SELECT ?s (COUNT(?o) AS ?c) {?s ?p ?o}", 1, 39, "variables of GROUP BY"),
        ("SELECT ?l { <test> rdfs:label ?l }", 1, 13, "relative"),
        ("SELECT * { ?s <p> ?o }", 1, 15, "relative"),
        ("SELECT * { <http://x/a b> ?p ?o }", 1, 12, "' '"),
        ("SELECT * { ?s ?p <http://x/{a}> }", 1, 18, "'{'"),
        ("PREFIX s: <a:>\nASK { s:1.2.3 ?p s:4.5.6 ?o }", 2, 26, "'?o'"),
    ],
)
def test_syntax_errors_point_at_the_token(query: str, line: int, column: int, what: str) -> None:
    with pytest.raises(SyntaxError) as raised:
        Store().query(escape_inner_dots(query))
    message = str(build_syntax_error(query, str(raised.value)))
    assert f"line {line}, column {column}" in message
    assert what in message


@given(st.text(max_size=30))
def test_a_syntax_error_can_be_told_of_any_text(text: str) -> None:
    with pytest.raises(SyntaxError) as raised:
        Store().query("ASK {} }" + text)
    assert "Invalid SPARQL" in str(build_syntax_error("ASK {} }" + text, str(raised.value)))


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT * FROM <a:b> {}", True),
        ("select *from<a:b>{}", True),
        ("ASKFROM<a:b>{}", True),
        ("DESCRIBE <a:s> FROM NAMED <a:b>", True),
        ("CONSTRUCT FROM <a:b> WHERE { ?s ?p ?o }", True),
        ("PREFIX : <a:> SELECT *FROM:b {}", True),
        ("PREFIX : <a:> SELECT *FROMNAMED:b {}", True),
        ("SELECT * { ?from ?p 'FROM <a:b>' } # FROM <a:b>", False),
        ('SELECT * { ?s ?p """ from\\n from """ }', False),
        ("PREFIX from: <a:> SELECT * { ?s from:p ?o }", False),
        ("PREFIX a: <a:> SELECT * { ?s a:from ?o }", False),
        ("PREFIX a: <a:> SELECT * { ?s a:wasDerivedFrom ?o }", False),
        ("PREFIX a: <a:> SELECT * FROM <a:b> { ?s a:wasDerivedFrom ?o }", True),
        ("PREFIX a: <a:> SELECT * { ?s a:" + "b" * 70 + "From ?o }", False),
    ],
)
def test_a_query_that_names_its_dataset_is_told_from_one_that_does_not(query: str, named: bool) -> None:
    assert has_dataset_clause(query) is named
