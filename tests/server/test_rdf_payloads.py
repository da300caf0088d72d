"""Documents made to cost more than they are: each is answered with an error within what one request may take."""

from __future__ import annotations

import time

import pytest
from pyoxigraph import Literal, NamedNode, Triple

from kg.errors import InvalidInputError, PayloadTooLargeError, QueryTimeoutError
from kg.processes.child import Limits
from kg.server.problem_details import HttpError
from kg.server.rdf_payloads import Body
from kg.store.payloads import Payload

BASE = "urn:graph"
FORM = "multipart/form-data; boundary=B"


def parse(body: Body, limits: Limits) -> list[Triple]:
    with body.read(None, BASE, limits) as triples:
        return list(triples)


def form(*parts: tuple[str, bytes], end: str = "\r\n") -> bytes:
    lines = [f"--B{end}Content-Type: {kind}{end}{end}".encode() + body + end.encode() for kind, body in parts]
    return b"".join(lines) + b"--B--" + end.encode()


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_a_part_is_taken_byte_for_byte(end: str) -> None:
    literal = 'one\ntwo "\\r\\n" ü 😀\u000b'
    body = form(("text/turtle", '<a:s> <a:p> """one\ntwo "\\\\r\\\\n" ü 😀\u000b""" .'.encode()), end=end)
    read = parse(Body(body, FORM), Limits())
    assert read == [Triple(NamedNode("a:s"), NamedNode("a:p"), Literal(literal))]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (
            b"".join(
                b"--B%d\r\nContent-Type: multipart/mixed; boundary=B%d\r\n\r\n" % (n, n + 1) for n in range(3_000)
            ),
            0,
        ),
        (b"--B\r\nContent-Type: multipart/mixed; boundary=C\r\n\r\n--C\r\n\r\n--C--\r\n--B--", 415),
        ("--B\r\nContent-Type: text/té\r\n\r\n<a:a> <a:b> <a:q> .\r\n--B--".encode(), 415),
        (b"--B\r\nContent-Type: text/turtle\r\nContent-Transfer-Encoding: base64\r\n\r\nPGE6YT4=\r\n--B--", 0),
        (b"--B\r\nContent-Type: text/turtle\r\n\r\n<a:a> <a:b> <a:q> .", 0),
        (b"--B", 0),
        (b"", 0),
    ],
)
def test_a_form_that_is_not_as_it_should_be_is_refused(body: bytes, status: int) -> None:
    with pytest.raises(HttpError if status else InvalidInputError) as raised:
        parse(Body(body, FORM), Limits())
    if isinstance(raised.value, HttpError):
        assert raised.value.status == status


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"--B\r\n" + b"a: b\r\n" * 1_000_000 + b"\r\nx\r\n--B--", "16384 bytes"),
        (b"--B\r\nContent-Type: text/turtle;" + b"\r\n a" * 1_000_000 + b"\r\n\r\nx\r\n--B--", "16384 bytes"),
        (b"--B\r\n" + b"a" * 20_000 + b"\r\n--B--", "16384 bytes"),
    ],
)
def test_the_headers_of_a_part_are_bounded(body: bytes, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        next(Body(body, FORM).parts("B"))


@pytest.mark.measures_processor_time
def test_parts_are_cut_off_one_by_one() -> None:
    """Who stops at the first part does not pay for a million others."""
    body = b"--B\r\n\r\n" * 20_000
    started = time.thread_time()
    next(Body(body, FORM).parts("B"))
    first = time.thread_time()
    with pytest.raises(InvalidInputError, match="last part"):
        list(Body(body, FORM).parts("B"))
    assert first - started < (time.thread_time() - first) / 10


def test_all_parts_of_a_form_share_one_deadline() -> None:
    body = form(*[("application/ld+json", b'{"@id": "a:s", "a:p": "x"}')] * 20_000)
    started = time.monotonic()
    with pytest.raises(QueryTimeoutError):
        parse(Body(body, FORM), Limits(timeout_s=0.1))
    assert time.monotonic() - started < 20


def test_all_parts_of_a_form_share_what_they_may_come_to() -> None:
    prefix = "x" * 2_000
    part = f"@prefix x: <urn:{prefix}> . x:s x:p {', '.join(f'x:{n}' for n in range(300))} .".encode()
    assert parse(Body(form(("text/turtle", part)), FORM), Limits())
    with pytest.raises(PayloadTooLargeError) as raised:
        parse(Body(form(*[("text/turtle", part)] * 20), FORM), Limits(max_bytes=8 << 20))
    assert raised.value.http_status == 413


@pytest.mark.parametrize("size", [0, 1 << 17])
def test_short_terms_may_be_long_in_full(size: int) -> None:
    """Integers in Turtle take 40 times as much in N-Quads. The limits of the graph are the only ones."""
    long = "x" * 600
    text = f"@prefix x: <urn:{long}> . x:s x:p {', '.join(map(str, range(8_000)))} . #{' ' * size}"
    assert len(parse(Body(text.encode(), "text/turtle"), Limits())) == 8_000
    with pytest.raises(PayloadTooLargeError):
        parse(Body(text.encode(), "text/turtle"), Limits(max_bytes=8 << 20))


def nested(depth: int) -> bytes:
    return b"<a:s> <a:p> " + b"<<( <a:s> <a:p> " * depth + b"<a:o>" + b" )>>" * depth + b" ."


def test_triples_may_speak_of_triples_but_not_without_end() -> None:
    assert len(parse(Body(nested(8), "text/turtle"), Limits())) == 1
    for depth in (9, 100, 1_000, 10_000):
        with pytest.raises(InvalidInputError, match="triple"):
            parse(Body(nested(depth), "text/turtle"), Limits(timeout_s=60))


@pytest.mark.parametrize("size", [100, 90_000])
@pytest.mark.parametrize("kind", ["text/turtle", "application/n-triples"])
def test_documents_are_bounded_by_quads(kind: str, size: int) -> None:
    """Short ones, which are parsed at once, and others."""
    lines = [f"<urn:s> <urn:p> '{n}' .\n".replace("'", '"').encode() for n in range(10)]
    lines.append(b"# " + b"a" * size + b"\n")
    assert len(parse(Body(b"".join(lines), kind), Limits(max_quads=10))) == 10
    with pytest.raises(PayloadTooLargeError, match=r"QUADCITE_MAX_GRAPH_QUADS.*kg load"):
        parse(Body(b"".join(lines), kind), Limits(max_quads=9))


@pytest.mark.parametrize("kind", ["text/turtle", "application/ld+json"])
def test_payload_is_the_same_from_a_process_and_from_here(kind: str) -> None:
    graph, node = NamedNode("urn:graph"), b"<urn:s> <urn:p> [ <urn:q> [ <urn:r> 1 ] ], [ <urn:q> 2 ], 01 ."
    if kind == "application/ld+json":
        other = b'{"@id": "urn:s", "urn:p": [{"urn:q": {"urn:r": 1}}, {"urn:q": 2}, '
        other += b'{"@value": "01", "@type": "http://www.w3.org/2001/XMLSchema#integer"}]}'
    else:
        other = node + b" # " + b"a" * 70_000
    bodies = Body(node, "text/turtle"), Body(other, kind)
    with bodies[0].read(graph, BASE, Limits()) as here, bodies[1].read(graph, BASE, Limits()) as there:
        assert isinstance(here, Payload)
        assert isinstance(there, Payload)
        assert set(here) == set(there)
        assert list(there) == list(there), "it can be read again"
        assert (len(here), here.sha256) == (len(there), there.sha256)
