"""What `kg demo` plays: the fixtures loaded, served, asked about over MCP and SPARQL, and every answer checked.

It runs the commands that a person would run, each in a process of its own, in a folder that is gone afterwards.
"""

from __future__ import annotations

import csv
import hashlib
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import anyio
from fastmcp import Client
from fastmcp.exceptions import FastMCPError, McpError

from kg import bundle, interruption
from kg.cli.output import put
from kg.errors import QuadciteError, UpstreamError
from kg.store.lock import find_holder
from kg.vocabulary import slug_of

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 30.0
WIDTH: Final = 100

KG: Final = (sys.executable, "-m", "kg.cli")


class Question(NamedTuple):
    """A question, its filters, and the document that has to be among the answers."""

    text: str
    filters: Mapping[str, Sequence[str]]
    expected: str


QUESTIONS: Final = (
    Question(
        "what must be done with hot water pumped up from underground",
        {"iso3": ["DJI"], "language": ["en"]},
        "fictional-decree-on-geothermal-exploration_d0a1",
    ),
    Question("how are people warned that a cyclone is coming", {}, "fictional-coastal-adaptation-plan_bd01"),
    Question("photovoltaics on schools", {"iso3": ["BRA"], "language": ["en"]}, "roteiro-solar-ficticio_br02"),
    Question(
        "compensation for homes that will be flooded",
        {"iso3": ["NZL", "FJI"]},
        "fictional-zero-carbon-adaptation-regulations_law9002",
    ),
)


class Topic(NamedTuple):
    """A concept by one of its names, and the wider one that has to be among its neighbours."""

    name: str
    qid: str
    wider: str


TOPICS: Final = (Topic("geothermal heat", "Q1012", "Q1009"), Topic("early warning system", "Q1049", "Q1046"))


class Spoken(NamedTuple):
    """What to look for in speeches, under which filters, and the id of the speech that has to be the first answer."""

    text: str
    filters: Mapping[str, str]
    expected: str


SPEECH: Final = Spoken(
    "the sea rises and nobody acts",
    {"chamber": "House of Representatives", "date_from": "2024-01-01", "party": "Greens"},
    "0b7c1f52-9a3e-4d06-8f21-5c6e7d8a9b01",
)

CODE: Final = {"municipality": "Quarry Bend", "state": "UT"}
USE: Final = "duplex"
DISTRICT: Final = "R-1"
"""Where the code permits that use, on conditions."""
HEIGHT: Final = ("building height", "thirty-five feet", 35.0)
"""A kind of standard, and the words of one with the number that they stand for."""
BESIDE: Final = ("Quarry Bend, UT", "Lower Quill, CT")


SPARQL: Final = """\
SELECT ?country (COUNT(DISTINCT ?document) AS ?documents) (COUNT(DISTINCT ?passage) AS ?passages) WHERE {
  ?document a kg:PolicyDocument ; kg:jurisdiction/skos:notation ?country .
  ?passage dcterms:isPartOf ?document
} GROUP BY ?country ORDER BY ?country"""


SEARCH: Final = """\
SELECT ?country ?title (MAX(?score) AS ?best) WHERE {
  SERVICE kg:search { ?passage kg:matches "warning people before a storm" ; kg:score ?score ; kg:limit 20 }
  ?passage dcterms:isPartOf ?document .
  ?document dcterms:title ?title ; kg:jurisdiction/skos:notation ?country
} GROUP BY ?country ?title ORDER BY DESC(?best) LIMIT 3"""

MISSPELT: Final = "SELECT ?text WHERE { ?passage a kg:Passage ; dcterms:partOf ?document ; schema:txt ?text }"


def run() -> None:
    """Play the demo. Raises QuadciteError when any answer is not what the fixtures say."""
    with interruption.temporary_folder() as folder:
        data_dir = folder / "kg-data"
        _load(data_dir)
        with server(data_dir) as address:
            cited = _ask(address)
            _ask_concepts(address)
            _ask_speech(address)
            _ask_code(address)
            _ask_sparql(address, "the same graph by SPARQL: passages by country", SPARQL)
            _ask_sparql(address, "search inside SPARQL: the best documents on a topic", SEARCH)
            _repair(address)
            _write(address)
        _explain(data_dir, cited)
    put("\nDone: the server has stopped and the data are gone. To keep some: kg load climate PATH, then kg serve.")


def _heading(text: str) -> None:
    put(f"\n== {text}")


def _indented(text: str, indent: str = "   ") -> None:
    put(textwrap.fill(" ".join(text.split()), WIDTH, initial_indent=indent, subsequent_indent=indent))


def _kg(*arguments: str | Path) -> str:
    """Run one `kg` command and return what it printed."""
    done = subprocess.run([*KG, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        command = f"kg {' '.join(map(str, arguments))}"
        raise QuadciteError(f"`{command}` ended with exit code {done.returncode}:\n{done.stderr}")
    return done.stdout


def _load(data_dir: Path) -> None:
    fixtures = bundle.folder("fixtures")
    _heading("kg load climate FIXTURES/climate --wait     (documents written for this demonstration; all fictional)")
    started = time.monotonic()
    report = json.loads(_kg("load", "climate", fixtures / "climate", "--data-dir", data_dir, "--wait", "--json"))
    if report["rejected"] or report["pending_vectors"] or not report["loaded"]:
        raise QuadciteError(f"the fixtures did not load whole: {report}")
    put(
        f"   {report['loaded']} documents, {report['text_units']} passages, {report['quads_added']} quads, "
        f"each passage with its vector, in {time.monotonic() - started:.1f} s"
    )
    _heading("kg load wikibase FIXTURES/wikibase --base climate     (a concept store, fictional too)")
    report = json.loads(
        _kg("load", "wikibase", fixtures / "wikibase", "--base", "climate", "--data-dir", data_dir, "--json")
    )
    if report["rejected"] or not report["loaded"] or not report["mentions"]:
        raise QuadciteError(f"the concepts did not load whole, or no text names them: {report}")
    put(
        f"   {report['loaded']} items and properties, {report['quads_added']} quads; "
        f"{report['mentions']} mentions of concepts in the passages"
    )
    _heading("kg load hansard FIXTURES/hansard --wait     (speeches in a parliament, as fictional)")
    report = json.loads(_kg("load", "hansard", fixtures / "hansard", "--data-dir", data_dir, "--wait", "--json"))
    if report["rejected"] or report["pending_vectors"] or not report["loaded"]:
        raise QuadciteError(f"the speeches did not load whole: {report}")
    put(f"   {report['loaded']} records (a sitting day or a speech each), {report['text_units']} chunks")
    _heading("kg load zoning FIXTURES/zoning     (the codes of three municipalities, as fictional)")
    report = json.loads(_kg("load", "zoning", fixtures / "zoning", "--data-dir", data_dir, "--json"))
    if report["rejected"] or not report["loaded"]:
        raise QuadciteError(f"the codes did not load whole: {report}")
    put(f"   {report['loaded']} records (a section, or a table of one municipality), {report['quads_added']} quads")


@contextmanager
def server(data_dir: Path) -> Iterator[str]:
    """Run `kg serve` on a free port of loopback and yield its address."""
    _heading("kg serve --port 0")
    command = [*KG, "serve", "--host", "127.0.0.1", "--port", "0", "--data-dir", str(data_dir)]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            address = _address(process, data_dir)
            put(f"   {address}")
            yield address
        except QuadciteError as error:
            log.seek(0)
            raise QuadciteError(f"{error}\nThe server said:\n{log.read()}") from error
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise QuadciteError(f"the server did not stop within {STOP_TIMEOUT_S:.0f} s of being told to") from None
    if process.returncode not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
        raise QuadciteError(f"the server ended with exit code {process.returncode}")


def _address(process: subprocess.Popen[bytes], data_dir: Path) -> str:
    """Wait until the server says in the lock file where it listens, and answers there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise QuadciteError(f"the server ended at its start, with exit code {process.returncode}")
        who = find_holder(data_dir)
        if who and who.address:
            address = who.address.rstrip("/")
            try:
                _http(address, "/health")
            except OSError:
                pass
            else:
                return address
        time.sleep(0.05)
    raise QuadciteError(f"the server was not ready within {START_TIMEOUT_S:.0f} s")


def _http(
    address: str,
    path: str,
    accept: str = "application/json",
    *,
    method: str = "GET",
    body: bytes | None = None,
    type_: str | None = None,
) -> str:
    host = urlsplit(address)
    connection = http.client.HTTPConnection(host.hostname or "", host.port, timeout=30)
    try:
        connection.request(method, path, body, {"Accept": accept} | ({"Content-Type": type_} if type_ else {}))
        response = connection.getresponse()
        said = response.read().decode()
    finally:
        connection.close()
    if not 200 <= response.status < 300:
        raise QuadciteError(f"{method} {path} was answered with {response.status}: {said}")
    return said


def _ask(address: str) -> dict[str, Any]:
    """Ask every question over MCP, check and print the answers, and return the evidence of the last one."""

    url = f"{address}/mcp"
    evidence: dict[str, Any] = {}
    for text, filters, expected in QUESTIONS:
        limited = "".join(f"   {name}: {' or '.join(values)}" for name, values in filters.items())
        _heading(f"search over MCP: {text}?{limited}")
        (found,) = call_tools(url, [("search", {"query": text, "filters": filters, "limit": 2})])
        if expected not in [slug_of(hit["id"]) for hit in found["results"]]:
            raise QuadciteError(f"{expected} is not among the answers to {text!r}: {found['results']}")
        (fetched,) = call_tools(url, [("fetch", {"ids": [hit["id"] for hit in found["results"]]})])
        for hit, item in zip(found["results"], fetched["evidence"], strict=True):
            check(hit, item, filters)
            _cite(item, hit["score"])
        evidence = fetched["evidence"][0]
    _heading("family_overview over MCP: policy families, with their number of documents")
    (overview,) = call_tools(url, [("family_overview", {})])
    for family in overview["families"]:
        put(f"   {family['doc_count']}  {family['family_title']}")
    return evidence


def _ask_concepts(address: str) -> None:
    """Find two concepts by name, show where text names the first, and what both are next to; all of it checked."""

    url = f"{address}/mcp/climate"
    for number, (name, qid, wider) in enumerate(TOPICS):
        asked = "concept_find, " + ("" if number else "concept_mentions, ") + "concept_neighbors"
        _heading(f"{asked} over MCP: {name}")
        (found,) = call_tools(url, [("concept_find", {"q": name, "limit": 1})])
        if [concept["qid"] for concept in found["concepts"]] != [qid]:
            raise QuadciteError(f"{name!r} is {qid}, and concept_find says {found['concepts']}")
        put(f"   {qid}  {found['concepts'][0]['preferred_label']}: {found['concepts'][0]['description']}")
        if not number:
            (mentioned,) = call_tools(url, [("concept_mentions", {"qids": [qid], "limit": 2})])
            if not mentioned["evidence"]:
                raise QuadciteError(f"no passage mentions {qid}")
            for item in mentioned["evidence"]:
                check(item, item, {})
                _cite(item, item["score"], f"names it: {', '.join(spans(item, qid))}")
            put("")
        (near,) = call_tools(url, [("concept_neighbors", {"qid": qid})])
        if (qid, wider) not in {(edge["subject_qid"], edge["object_qid"]) for edge in near["edges"]}:
            raise QuadciteError(f"{wider} is not among the neighbours of {qid}: {near['edges']}")
        for edge in near["edges"]:
            labels = edge["labels"]
            put(f"   {labels['subject']}  --{labels['predicate']}->  {labels['object']}")


def _ask_speech(address: str) -> None:
    """Find a speech under filters, read it whole, and hold both against each other and against its hash."""

    url = f"{address}/mcp/parliament"
    limited = "".join(f"   {name}: {value}" for name, value in SPEECH.filters.items())
    _heading(f"search_speeches, get_speech over MCP: {SPEECH.text}?{limited}")
    (found,) = call_tools(url, [("search_speeches", {"query": SPEECH.text, **SPEECH.filters, "top_k": 1})])
    (hit,) = found["results"]
    if hit["speech_id"] != SPEECH.expected:
        raise QuadciteError(f"{SPEECH.expected} is not the first answer to {SPEECH.text!r}: {found['results']}")
    (speech,) = call_tools(url, [("get_speech", {"speech_id": hit["speech_id"]})])
    quoted(hit, speech)
    put("")
    _indented(f'"{hit["excerpt"]}"', "   | ")
    put(f"   {speech['speaker']} ({speech['party']}), {speech['hansard_reference']}: {speech['title']}")
    put(f"   {hit['evidence']['id']}   score {hit['relevance_score']:.3f}")
    put(f"   {speech['record']['total_chunks']} chunks give back its {speech['word_count']} words, which have the hash")
    put(f"   sha256 {speech['record']['text_sha256']} that they were loaded with")


def _ask_code(address: str) -> None:
    """Ask where a use is permitted and how high one may build, hold the words that say so against the sections that
    they are quoted from, and put two municipalities side by side.
    """

    url = f"{address}/mcp/zoning"
    _heading(f"kg_query_permissions over MCP: may a {USE} stand in district {DISTRICT} of {CODE['municipality']}?")
    (found,) = call_tools(url, [("kg_query_permissions", {**CODE, "district": DISTRICT, "use": USE})])
    if {rule.get("permission") for rule in found["permissions"]} != {"conditional"}:
        raise QuadciteError(f"a {USE} is conditional in {DISTRICT}, and kg_query_permissions says {found}")
    for rule in found["permissions"]:
        on = f", {'; '.join(rule['conditions'])}" if rule["conditions"] else ""
        _cite_rule(url, rule, f"{rule['district']}: {rule['permission']}{on}")
    kind, words, number = HEIGHT
    _heading(f"kg_query_standards over MCP: {kind} said in words")
    (found,) = call_tools(url, [("kg_query_standards", {**CODE, "standard_type": kind})])
    rule = next((rule for rule in found["standards"] if rule["raw_value"] == words), None)
    if rule is None or rule["value"] != number:
        raise QuadciteError(f"no {kind} of {words} is {number}: {found['standards']}")
    _cite_rule(url, rule, f"{rule['standard_type']}: {rule['bound']} {rule['value']:g} {rule['unit']}")
    _heading(f"compare_zoning over MCP: {USE} in {' and '.join(BESIDE)}")
    (found,) = call_tools(url, [("compare_zoning", {"municipalities": list(BESIDE), "use": USE})])
    for place in found["uses"][0]["places"]:
        levels = "; ".join(f"{level}: {', '.join(codes)}" for level, codes in place["districts"].items())
        put(f"   {place['municipality']}: {levels}")
        put(f"      as {place['rules'][0]} and others say")


def _cite_rule(url: str, rule: Mapping[str, Any], said: str) -> None:

    (section,) = call_tools(url, [("kg_query_section", {**CODE, "section_id": rule["section_ref"]})])
    evidence = rule["evidence"]
    words = stated(rule, section["raw_content"])
    put(f"   {said}")
    _indented(f'"{words}"', "   | ")
    put(f"   section {rule['section_ref']}, confidence {evidence['confidence']:g}   {evidence['id']}")
    put(f"   {Path(evidence['source']).name}, sha256 {evidence['sha256']}")


def stated(rule: Mapping[str, Any], text: str) -> str:
    """Return the words that a rule rests on, once they are found to stand in the section, whose file has the hash."""
    evidence = rule["evidence"]
    for span in evidence["spans"]:
        if text[span["start"] : span["end"]] != span["text"]:
            raise QuadciteError(f"section {rule['section_ref']} has other words at {span['start']}-{span['end']}")
    actual = hashlib.sha256(Path(evidence["source"]).read_bytes()).hexdigest()
    if actual != evidence["sha256"]:
        raise QuadciteError(f"{evidence['source']} has the hash {actual}, and the evidence says {evidence['sha256']}")
    return " ... ".join(span["text"] for span in evidence["spans"])


def quoted(hit: Mapping[str, Any], speech: Mapping[str, Any]) -> None:
    """Hold a speech against its hash, and an excerpt against the place in it that it cites."""
    text, place = speech["full_text"], hit["evidence"]
    actual = hashlib.sha256(text.encode()).hexdigest()
    if actual != speech["record"]["text_sha256"]:
        recorded = speech["record"]["text_sha256"]
        raise QuadciteError(f"{speech['speech_id']} has the hash {actual}, and {recorded} is recorded of it")
    if text[place["start"] : place["end"]] != hit["excerpt"]:
        raise QuadciteError(
            f"{speech['speech_id']} has other words at {place['start']}-{place['end']} than the excerpt"
        )


def spans(item: Mapping[str, Any], qid: str) -> list[str]:
    """Return the words of a passage that name a concept, with their offsets, once they are found to stand there."""
    text, found = item["passage"]["text"], []
    for match in item["concept_matches"]:
        for (start, end), words in zip(match["offsets"], match["words"], strict=True):
            if text[start:end] != words:
                raise QuadciteError(f"{item['id']} has {text[start:end]!r} at {start}-{end}, not {words!r}")
            if match["qid"] == qid:
                found.append(f'"{words}" at {start}-{end}')
    if not found:
        raise QuadciteError(f"{item['id']} is said to mention {qid}, and does not say where")
    return found


def check(hit: Mapping[str, Any], item: Mapping[str, Any], filters: Mapping[str, Sequence[str]]) -> None:
    """Hold one answer against the request and against the file that it cites."""
    if item["id"] != hit["id"]:
        raise QuadciteError(f"fetch returned {item['id']} where {hit['id']} was asked for")
    if "iso3" in filters and not set(filters["iso3"]) & set(item["document"]["geographies"]):
        raise QuadciteError(
            f"{item['id']} is of {item['document']['geographies']}, outside the filter {filters['iso3']}"
        )
    source = Path(item["provenance"]["source"])
    with source.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != item["provenance"]["sha256"]:
        raise QuadciteError(f"{source} has the hash {actual}, and the evidence says {item['provenance']['sha256']}")


def _cite(item: Mapping[str, Any], score: float, more: str = "") -> None:
    document, passage, origin = item["document"], item["passage"], item["provenance"]
    put("")
    _indented(f'"{passage["text"]}"', "   | ")
    page = f", page {passage['page_number']}" if passage["page_number"] is not None else ""
    put(f"   {document['title']} ({', '.join(document['geographies'])}){page}")
    put(f"   {item['id']}   score {score:.3f}{more and '   ' + more}")
    put(f"   {Path(origin['source']).name}, row {origin['row']}, sha256 {origin['sha256']}")


def _ask_sparql(address: str, heading: str, query: str) -> None:
    _heading(heading)
    put(textwrap.indent(query, "   | "))
    rows = list(csv.reader(_http(address, f"/sparql?query={quote(query)}", "text/csv").splitlines()))
    if len(rows) < 2:
        raise QuadciteError("the SPARQL query over the fixtures found nothing")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        put("   " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _repair(address: str) -> None:
    _heading("a query with mistakes, checked before it runs")
    put(textwrap.indent(MISSPELT, "   | "))
    hints = json.loads(_http(address, f"/sparql/check?query={quote(MISSPELT)}"))["hints"]
    for expected in ("dcterms:isPartOf", "schema:text"):
        if not any(expected in hint["suggestions"] for hint in hints):
            raise QuadciteError(f"{expected} is not suggested for {MISSPELT!r}: {hints}")
    for hint in hints:
        _indented(hint["message"])


def _write(address: str) -> None:
    graph = "/graphs/user/demo"
    _heading(f"PUT {graph}, GET it back, DELETE it: a graph of one's own, by the Graph Store Protocol")
    note = '<urn:example:note> <http://www.w3.org/2000/01/rdf-schema#label> "worth a second look" .'
    _http(address, graph, method="PUT", body=note.encode(), type_="text/turtle")
    held = _http(address, graph, "application/n-triples")
    if held.strip() != note:
        raise QuadciteError(f"{graph} does not hold what was put there: {held}")
    put(textwrap.indent(held.rstrip(), "   "))
    _http(address, graph, method="DELETE")


def _explain(data_dir: Path, cited: Mapping[str, Any]) -> None:
    _heading(f"kg why '{cited['id']}'")
    text = _kg("why", cited["id"], "--data-dir", data_dir)
    for expected in (cited["provenance"]["sha256"], str(cited["provenance"]["row"])):
        if expected not in text:
            raise QuadciteError(f"`kg why` does not name {expected}, which the evidence of {cited['id']} cites")
    put(textwrap.indent(text.rstrip(), "   "))


def call_tools(url: str, calls: Sequence[tuple[str, Mapping[str, object]]]) -> list[dict[str, Any]]:
    """Call tools of the MCP server at `url`, one after the other in one session, and return their structured results.

    Raises UpstreamError when the server cannot be reached, a tool reports an error or an answer breaks its schema.
    """

    async def ask() -> list[dict[str, Any]]:
        results = []
        async with Client(url) as client:
            for name, arguments in calls:
                answer = await client.call_tool(name, dict(arguments), raise_on_error=False)
                if answer.is_error or answer.structured_content is None:
                    said = " ".join(getattr(block, "text", "") for block in answer.content)
                    raise UpstreamError(f"{url}: the tool {name!r} answered with an error: {said or 'no content'}")
                results.append(dict(answer.structured_content))
        return results

    try:
        return anyio.run(ask)
    except (FastMCPError, McpError, RuntimeError, OSError) as error:  # RuntimeError: the client's own schema check
        raise UpstreamError(f"cannot ask {url}: {error}") from error
