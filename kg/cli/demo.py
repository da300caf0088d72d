"""The demo of `kg demo`: load the fixtures of all domains, serve them, ask, check each answer against its source, stop.

It runs the commands that a user would run, each in its own process, in a temporary folder.
"""

from __future__ import annotations

import csv
import hashlib
import json
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
from fastmcp import Client
from fastmcp.exceptions import FastMCPError, McpError

from kg import bundle, interruption
from kg.cli.output import put
from kg.errors import QuadciteError, UpstreamError
from kg.store.lock import find_address
from kg.vocabulary import slug_of

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 30.0

KG: Final = (sys.executable, "-m", "kg.cli")
SOURCES: Final = {"climate": (), "wikibase": ("--base", "climate"), "hansard": (), "zoning": (), "files": ()}
"""The sources with the options that their fixtures need."""

LAW: Final = {"query": "what must be done with hot water pumped up from underground", "filters": {"iso3": ["DJI"]}}
LAW_FOUND: Final = "fictional-decree-on-geothermal-exploration_d0a1"
CONCEPT: Final = {"q": "geothermal heat", "limit": 1}
CONCEPT_FOUND: Final = "Q1012"
HOUSE: Final = {"chamber": "House of Representatives", "party": "Greens", "date_from": "2024-01-01", "top_k": 1}
SPEECH: Final = {"query": "the sea rises and nobody acts", **HOUSE}
SPEECH_FOUND: Final = "0b7c1f52-9a3e-4d06-8f21-5c6e7d8a9b01"
CODE: Final = {"municipality": "Quarry Bend", "state": "UT"}
USE: Final = {"district": "R-1", "use": "duplex"}
USE_FOUND: Final = "conditional"
NOTES: Final = {"q": "how is a tide pump started", "k": 1}
NOTES_FOUND: Final = "files/handbook/pumps/start.md"
SPARQL: Final = """\
SELECT ?country ?title (MAX(?score) AS ?best) ?file ?hash WHERE {
  SERVICE kg:search { ?passage kg:matches "warning people before a storm" ; kg:score ?score ; kg:limit 20 }
  ?passage dcterms:isPartOf ?document .
  GRAPH ?graph { ?document dcterms:title ?title } ?document kg:jurisdiction/skos:notation ?country .
  ?graph prov:wasDerivedFrom ?source . ?source kg:location ?file ; kg:sha256 ?hash
} GROUP BY ?country ?title ?file ?hash ORDER BY DESC(?best) LIMIT 3"""
NOTE: Final = '<urn:example:note> <http://www.w3.org/2000/01/rdf-schema#label> "worth a second look" .'


def run() -> None:
    """Play the demo. Raises QuadciteError if an answer differs from the fixtures."""
    with interruption.temporary_folder() as folder:
        data_dir = folder / "kg-data"
        for source, options in SOURCES.items():
            _load(data_dir, source, options)
        with server(data_dir) as address:
            cited = _ask_law(address)
            _ask_concept(address)
            _ask_speech(address)
            _ask_code(address)
            _ask_files(address)
            _ask_sparql(address)
            _write(address)
        _explain(data_dir, cited)
    put("\nDone. The server has stopped and the data are deleted. For your own: kg load climate PATH, then kg serve.")


def _load(data_dir: Path, source: str, options: tuple[str, ...]) -> None:
    _heading(f"kg load {' '.join((source, 'FIXTURES', *options))} --wait")
    folder = bundle.folder("fixtures") / source
    report = json.loads(_run_kg("load", source, folder, *options, "--data-dir", data_dir, "--wait", "--json"))
    expect(report["loaded"] and not report["rejected"] and not report["pending_vectors"], "all records load", report)
    put(f"   {report['loaded']} records, {report['quads_added']} quads, {report['text_units']} texts (all fictional)")


def _ask_law(address: str) -> Mapping[str, Any]:
    _heading(f"search over MCP: {LAW['query']}?")
    hits = call_tool(address, "search", {**LAW, "limit": 1})["results"]
    expect([slug_of(hit["id"]) for hit in hits] == [LAW_FOUND], LAW_FOUND, hits)
    evidence: dict[str, Any] = call_tool(address, "fetch", {"ids": [hits[0]["id"]], "detail": "full"})["evidence"][0]
    _cite(evidence)
    return evidence


def _ask_concept(address: str) -> None:
    _heading(f"concept_find and concept_mentions over MCP: {CONCEPT['q']}")
    found = call_tool(address, "concept_find", CONCEPT)["concepts"]
    expect([concept["qid"] for concept in found] == [CONCEPT_FOUND], CONCEPT_FOUND, found)
    wanted = {"qids": [CONCEPT_FOUND], "limit": 1, "detail": "full"}
    mention = call_tool(address, "concept_mentions", wanted)["evidence"][0]
    for match in mention["concept_matches"]:
        for (start, end), words in zip(match["offsets"], match["words"], strict=True):
            check_quote(mention["passage"]["text"], start, end, words)
            put(f'   {match["qid"]} is named "{words}" at {start}-{end}')
    _cite(mention)


def _ask_speech(address: str) -> None:
    _heading(f"search_speeches and get_speech over MCP: {SPEECH['query']}?")
    (hit,) = call_tool(address, "search_speeches", {**SPEECH, "detail": "full"})["results"]
    expect(hit["speech_id"] == SPEECH_FOUND, SPEECH_FOUND, hit)
    speech = call_tool(address, "get_speech", {"speech_id": SPEECH_FOUND, "detail": "full"})
    check_quote(speech["full_text"], hit["evidence"]["start"], hit["evidence"]["end"], hit["excerpt"])
    check_hash(speech["full_text"].encode(), speech["record"]["text_sha256"])
    _quote(hit["excerpt"])
    put(f"   {speech['speaker']} ({speech['party']}), {speech['hansard_reference']}: {speech['title']}")
    put(f"   {hit['evidence']['id']}\n   text sha256 {speech['record']['text_sha256']}")


def _ask_code(address: str) -> None:
    _heading(f"kg_query_permissions over MCP: may I build a {USE['use']} in {USE['district']}, {CODE['municipality']}?")
    rules = call_tool(address, "kg_query_permissions", {**CODE, **USE, "detail": "full"})["permissions"]
    expect({rule["permission"] for rule in rules} == {USE_FOUND}, USE_FOUND, rules)
    for rule in rules:
        section = call_tool(address, "kg_query_section", {**CODE, "section_id": rule["section_ref"], "detail": "full"})
        evidence = rule["evidence"]
        for span in evidence["spans"]:
            check_quote(section["raw_content"], span["start"], span["end"], span["text"])
        check_hash(_read_source(evidence["source"]), evidence["sha256"])
        put(f"   {rule['district']}: {', '.join((rule['permission'], *rule['conditions']))}")
        _quote(" ... ".join(span["text"] for span in evidence["spans"]))
        put(f"   section {rule['section_ref']}, {Path(evidence['source']).name}, sha256 {evidence['sha256']}")


def _ask_files(address: str) -> None:
    _heading(f"hybrid_query over MCP: {NOTES['q']}?")
    found = call_tool(address, "hybrid_query", {**NOTES, "detail": "full"})
    expect([chunk["path"] for chunk in found["chunks"]] == [NOTES_FOUND], NOTES_FOUND, found)
    (chunk,), (explanation,) = found["chunks"], found["explanations"]
    check_hash(_read_source(chunk["path"]), chunk["provenance"]["sha256"])
    _quote(chunk["snippet"])
    put(textwrap.fill(explanation, 100, initial_indent="   ", subsequent_indent="   "))
    put(f"   {chunk['id']}\n   sha256 {chunk['provenance']['sha256']}")


def _ask_sparql(address: str) -> None:
    _heading("SPARQL with full-text search, and the file behind each row")
    put(textwrap.indent(SPARQL, "   | "))
    response = httpx.get(f"{address}/sparql", params={"query": SPARQL}, headers={"Accept": "text/csv"}, trust_env=False)
    rows = list(csv.DictReader(response.raise_for_status().text.splitlines()))
    expect(bool(rows), "rows", rows)
    for row in rows:
        check_hash(_read_source(row["file"]), row["hash"])
        put(f"   {row['country']}  {row['title']}\n        {Path(row['file']).name}, sha256 {row['hash']}")


def _write(address: str) -> None:
    _heading("PUT a graph of your own, and a graph of a source (Graph Store Protocol)")
    for path, status in (("/graphs/user/demo", 201), ("/graphs/src/climate/demo", 403)):
        headers = {"Content-Type": "text/turtle"}
        response = httpx.put(f"{address}{path}", content=NOTE, headers=headers, trust_env=False)
        expect(response.status_code == status, f"{path}: {status}", response.text)
        put(f"   {path}: {response.status_code} {response.reason_phrase}")


def _explain(data_dir: Path, cited: Mapping[str, Any]) -> None:
    _heading(f"kg why '{cited['id']}'")
    text = _run_kg("why", cited["id"], "--data-dir", data_dir)
    for expected in (cited["provenance"]["sha256"], str(cited["provenance"]["row"])):
        expect(expected in text, expected, text)
    put(textwrap.indent(text.rstrip(), "   "))


def expect(is_right: object, expected: object, found: object) -> None:
    """Raise QuadciteError with the expected and the found value, unless the answer is right."""
    if not is_right:
        raise QuadciteError(f"Wrong answer. Expected: {expected}. Found: {found}")


def check_hash(content: bytes, cited: str) -> None:
    """Check that `content` has the SHA-256 that evidence cites."""
    expect(hashlib.sha256(content).hexdigest() == cited, cited, hashlib.sha256(content).hexdigest())


def check_quote(text: str, start: int, end: int, words: str) -> None:
    """Check that `text` contains `words` at the offsets that evidence cites."""
    expect(text[start:end] == words, f"{words!r} at {start}-{end}", text[start:end])


def _heading(text: str) -> None:
    put(f"\n== {text}")


def _quote(text: str) -> None:
    put(textwrap.fill(f'"{" ".join(text.split())}"', 100, initial_indent="   | ", subsequent_indent="   | "))


def _cite(evidence: Mapping[str, Any]) -> None:
    """Print a passage with its document, file, row and hash, once the file is checked."""
    document, origin = evidence["document"], evidence["provenance"]
    check_hash(_read_source(origin["source"]), origin["sha256"])
    _quote(evidence["passage"]["text"])
    put(f"   {document['title']} ({', '.join(document['geographies'])})\n   {evidence['id']}")
    put(f"   {Path(origin['source']).name}, row {origin['row']}, sha256 {origin['sha256']}")


def _read_source(name: str) -> bytes:
    """Read a source file of the fixtures by the name that evidence has, relative to their folder."""
    return (bundle.folder("fixtures") / name).read_bytes()


def _run_kg(*arguments: str | Path) -> str:
    """Run a `kg` command and return its output."""
    done = subprocess.run([*KG, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise QuadciteError(f"`kg {' '.join(map(str, arguments))}` failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


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
            deadline = time.monotonic() + START_TIMEOUT_S
            while (address := find_address(data_dir)) is None:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise QuadciteError(f"The server did not start within {START_TIMEOUT_S:.0f} s, or ended at once.")
                time.sleep(0.05)
            put(f"   {address}")
            yield address
        except (QuadciteError, httpx.HTTPError) as error:
            log.seek(0)
            raise QuadciteError(f"{error}\nLog of the server:\n{log.read()}") from error
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
    expect(process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM), "exit code 0", process.returncode)


def call_tool(address: str, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Call a tool over MCP and return its structured result. Raises UpstreamError if that fails."""

    async def ask() -> dict[str, Any]:
        async with Client(f"{address}/mcp/all") as client:
            return dict((await client.call_tool(name, dict(arguments))).structured_content or {})

    try:
        return anyio.run(ask)
    except (FastMCPError, McpError, RuntimeError, OSError) as error:  # RuntimeError: the client's own schema check
        raise UpstreamError(f"Cannot call {name!r} at {address}: {error}") from error
