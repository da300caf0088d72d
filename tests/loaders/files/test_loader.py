"""Files of folders as records: what is loaded, what is skipped, and what is refused with the reason."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from kg import bundle
from kg.errors import InvalidInputError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import SearchFilters
from kg.settings import Settings
from kg.store.protocol import select, term_text
from kg.tools.search.passages import fetch, search
from kg.vocabulary import DCTERMS, KG, SCHEMA, mint, sha256
from loaders.files import loader as files
from loaders.load_report import LoadReport
from loaders.readers.locations import find_files
from loaders.sources import build_loader, load
from tests.folders import without_models
from tests.printed_pdf import PdfPrinter

HANDBOOK = bundle.folder("fixtures") / "files" / "handbook"
NAMES = [
    f"{one}{other}" for one in ("wren", "tern", "gull", "crake", "dunlin") for other in ("", "wing", "song", "nest")
]
LONG = "The gulls of Ferrowick sit on the sea wall and wait for the boats that come in with the evening tide. " * 8


@pytest.fixture
def kg(open_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    return open_graph()


def write(folder: Path, **contents: str | bytes) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    for name, content in contents.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def load_bare(kg: KnowledgeGraph, folder: Path, **options: str) -> LoadReport:
    return load(kg, "files", [str(folder)], index=False, **options)


def paths(kg: KnowledgeGraph) -> set[str]:
    rows = select(kg.store.query, "SELECT ?path WHERE { ?file a kg:File ; kg:path ?path }")
    return {term_text(row["path"]) for row in rows}


def described(kg: KnowledgeGraph, *key: str) -> dict[NamedNode, object]:
    """Return the properties of a file in its graph."""
    iri = mint("file", *key)
    return {q.predicate: q.object for q in kg.store.graph(mint("graph", "src", "files", *key)) if q.subject == iri}


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fixtures of files, and a long note, with query workers and an index."""
    folder = tmp_path_factory.mktemp("handbook")
    words = "\n\n".join(f"Paragraph {number} is about mooring rope {number}. {LONG}" for number in range(30))
    write(folder / "notes", rope__md=f"# Rope\n\n{words}\n")
    settings = without_models(folder / "data")
    with KnowledgeGraph.open(folder / "data", settings) as opened:
        report = load(opened, "files", [str(HANDBOOK), str(folder / "notes")])
        assert (report.loaded, report.rejected) == (7, 0)
        yield opened


def test_handbook_is_loaded_with_structure_and_metadata(handbook: KnowledgeGraph) -> None:
    assert paths(handbook) == {"rope.md", *(p.relative_to(HANDBOOK).as_posix() for p in HANDBOOK.rglob("*.*"))}
    said = described(handbook, "handbook", "pumps", "start.md")
    assert said[DCTERMS.title] == Literal("Starting a pump")
    assert said[KG.securityLabel] == Literal("internal")
    assert said[SCHEMA.inLanguage] == Literal("en")
    hits = search(handbook, query="press the green button", filters=SearchFilters(domain=["files"])).results
    assert hits[0].id.startswith(mint("file", "handbook", "pumps", "start.md").value + "#char=")
    [evidence] = fetch(handbook, ids=[hits[0].id]).evidence
    lines = (HANDBOOK / "pumps" / "start.md").read_text().split("\n")
    first, last = map(int, (evidence.provenance.lines or "").split("-"))
    assert evidence.passage.text.strip() == "\n".join(lines[first - 1 : last])
    # All steps are in one chunk.
    assert "1. Close the drain" in evidence.passage.text
    assert "4. Open the valve fully" in evidence.passage.text


def test_pages_of_a_pdf_are_cited_without_their_furniture(handbook: KnowledgeGraph) -> None:
    [evidence] = fetch(handbook, ids=[mint("file", "handbook", "sea-wall.pdf").value]).evidence
    assert (evidence.passage.page_number, evidence.provenance.pages) == (1, "1-3")
    assert "Sea wall specification" not in evidence.passage.text
    assert "Page 2" not in evidence.passage.text
    assert "6.4 metres" in evidence.passage.text


def test_breadcrumb_is_searched_and_not_part_of_the_text(handbook: KnowledgeGraph) -> None:
    [best, *_] = search(handbook, query="council-notes sandbags loft", filters=SearchFilters(domain=["files"])).results
    [evidence] = fetch(handbook, ids=[best.id]).evidence
    assert "council-notes.txt" in best.id
    assert "council-notes" not in evidence.passage.text


def test_text_of_a_file_is_joined_from_its_chunks_and_has_the_stated_hash(handbook: KnowledgeGraph) -> None:
    said = described(handbook, "notes", "rope.md")
    found = fetch(handbook, id=mint("file", "notes", "rope.md").value)
    assert len(found.evidence) > 2
    assert Literal(sha256(found.text or "")) == said[KG.textSha256]
    assert Literal(len(found.text or "")) == said[KG.length]


def test_second_load_changes_nothing_and_a_changed_file_alone_is_replaced(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", a__md="# A\n\nOld words.", b__md="# B\n\nOther words.")
    load_bare(kg, folder)
    again = load_bare(kg, folder)
    assert (again.loaded, again.skipped, again.quads_added) == (0, 2, 0)
    write(folder, a__md="# A\n\nNew words.")
    changed = load_bare(kg, folder)
    assert (changed.loaded, changed.skipped) == (1, 1)
    (folder / "b.md").unlink()
    assert load(kg, "files", [str(folder)], prune=True, index=False).removed == 1
    assert paths(kg) == {"a.md"}


def test_near_duplicate_is_named_and_skipped_but_other_figures_are_another_document(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    text = " ".join(f"The boat {name} is moored." for name in NAMES) + " The fee is 30 crowns."
    folder = write(
        tmp_path / "notes",
        a__md=text,
        b__txt=text.replace("boat wren is", "boat robin is"),
        c__md=text.replace("30", "40"),
    )
    report = load_bare(kg, folder)
    assert paths(kg) == {"a.md", "c.md"}
    assert (report.loaded, report.skipped, report.rejected) == (2, 1, 0)
    assert any("b.txt" in warning and "a.md" in warning for warning in report.warnings)
    # A stored file that becomes a near-duplicate is removed.
    write(folder, c__md=text)
    assert load_bare(kg, folder).removed == 1
    assert paths(kg) == {"a.md"}


@pytest.fixture
def without_entities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entities are the subject of other tests: to load their pipeline takes seconds."""
    monkeypatch.setattr("loaders.files.graph.entities.Entities.compute", lambda self, due, table: iter(()))


@pytest.mark.usefixtures("without_entities")
def test_near_duplicate_of_a_stored_file_is_left_out_until_that_is_gone(kg: KnowledgeGraph, tmp_path: Path) -> None:
    first = write(tmp_path / "first", a__md=LONG, d__md="# D\n\nStaying words.")
    second = write(tmp_path / "second", b__md=LONG.replace("gulls", "terns", 1), c__md="# C\n\nOther words.")
    load(kg, "files", [str(first)])
    report = load(kg, "files", [str(second)])
    assert paths(kg) == {"a.md", "c.md", "d.md"}
    assert (report.loaded, report.skipped) == (1, 1)
    assert any("b.md" in warning and "first/a.md" in warning for warning in report.warnings)
    # Neither side changes: each load gives the same again.
    assert load(kg, "files", [str(first)]).removed == 0
    assert load(kg, "files", [str(second)]).loaded == 0
    (first / "a.md").unlink()
    report = load(kg, "files", [str(first)], prune=True)
    assert (report.removed, report.loaded) == (1, 1)
    assert paths(kg) == {"b.md", "c.md", "d.md"}


@pytest.mark.usefixtures("without_entities")
def test_near_duplicate_is_loaded_when_its_original_gets_another_text(kg: KnowledgeGraph, tmp_path: Path) -> None:
    first, second = write(tmp_path / "first", a__md=LONG), write(tmp_path / "second", b__md=LONG)
    load(kg, "files", [str(first)])
    load(kg, "files", [str(second)])
    assert paths(kg) == {"a.md"}
    write(first, a__md="# A\n\nNew words.")
    load(kg, "files", [str(first)])
    assert paths(kg) == {"a.md", "b.md"}


def test_stored_files_that_become_alike_elsewhere_stay(kg: KnowledgeGraph, tmp_path: Path) -> None:
    first, second = write(tmp_path / "first", a__md=LONG), write(tmp_path / "second", b__md=LONG + "But one.")
    load_bare(kg, second)
    graph = mint("graph", "src", "files", "second", "b.md")
    before = kg.store.graph(graph)
    load_bare(kg, write(first, a__md="Short."))
    write(first, a__md=LONG + "But one.")
    assert load_bare(kg, first).removed == 1
    assert load_bare(kg, second).removed == 0
    assert kg.store.graph(graph) == before


def test_file_with_a_new_name_is_loaded_though_the_old_record_is_stored(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", a__md=LONG)
    load_bare(kg, folder)
    (folder / "a.md").rename(folder / "b.md")
    assert load(kg, "files", [str(folder)], prune=True, index=False).loaded == 1
    assert paths(kg) == {"b.md"}


def test_tags_of_a_load_stay_until_another_gives_others(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", a__md="---\ntags: [own]\n---\nWords.", b__md="Others.")
    load_bare(kg, folder, tags="kb,docs")
    assert load_bare(kg, folder).skipped == 2
    write(folder, a__md="---\ntags: [own]\n---\nNew words.")
    assert load_bare(kg, folder).loaded == 1

    def tags(name: str) -> set[str]:
        graph = mint("graph", "src", "files", "notes", name)
        return {quad.object.value for quad in kg.store.graph(graph) if quad.predicate == DCTERMS.subject}  # type: ignore[union-attr]

    assert (tags("a.md"), tags("b.md")) == ({"own", "kb", "docs"}, {"kb", "docs"})
    load_bare(kg, folder, tags="kb")
    assert (tags("a.md"), tags("b.md")) == ({"own", "kb"}, {"kb"})
    load_bare(kg, folder, tags="")
    assert (tags("a.md"), tags("b.md")) == ({"own"}, set())


def test_loads_are_counted_in_the_status(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", a__md="# A\n\nWords.", b__md=LONG, c__md=LONG, e__md="")
    load_bare(kg, folder)
    found = kg.ingestion.get_status()
    assert found.counts == {"loaded": 2, "duplicate": 1, "rejected": 1}
    assert found.last_file == "notes/b.md"
    assert found.last_error is not None
    assert found.last_error.startswith("e.md: ")
    assert (found.files_per_s or 0) > 0
    assert (found.mean_commit_ms or 0) > 0
    (folder / "a.md").unlink()
    load(kg, "files", [str(folder)], prune=True, index=False)
    counts = kg.ingestion.get_status().counts or {}
    assert (counts["loaded"], counts["unchanged"], counts["removed"]) == (2, 1, 1)
    paths = [each.path for each in kg.ingestion.list_events() if each.outcome == "removed"]
    assert paths == ["a.md"]


def make_images_only() -> bytes:
    printer = PdfPrinter()
    printer.add_page()
    printer.add_box(72, 72, 300, 300)
    return printer.save()


def make_zip_bomb(path: Path) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w") as part:
            for _ in range(150):
                part.write(b" " * (1 << 20))
    return path.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.md", b"", "empty"),
        ("blank.txt", b" \n\n ", "empty"),
        ("program.md", b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40, "a program"),
        ("binary.md", bytes(range(1, 32)) * 300 + b"\xff\xfe\xfa", "Not a text file"),
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "an image"),
        ("really.md", b"%PDF-1.7\n", "a PDF"),
        ("damaged.pdf", b"%PDF-1.7\nnothing", "damaged"),
        ("damaged.docx", b"PK\x03\x04nothing", "damaged"),
        ("old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "encrypted"),
        ("deep.html", b"<p>a</p>" + b"<div>" * 30_000 + b"x", "nest too deeply"),
        ("nested.html", b"<p>a</p>" + b"<ul><li>" * 900 + b"x", "nest too deeply"),
        ("attributes.html", b"<p " + b" ".join(b"a%d=1" % number for number in range(20_000)) + b">x", "attributes"),
        ("cells.md", b"|a|b|\n|-|-|\n" + b"|x|y|\n" * 170_000, "cells"),
        ("only.html", b"<html><head><title>x</title></head><body><script>y</script></body></html>", "no text"),
    ],
)
def test_file_that_cannot_be_read_is_refused_with_the_reason(name: str, content: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        files.read_file(content, Path(name).suffix, name)


PAGE = """<html lang="en"><head><title>Locks</title><meta name="keywords" content="lock, tide"><meta name="security"
content="internal"></head><body><nav><a href="/">Home</a></nav><div class="cookie-banner">We use cookies</div>
<ul class="breadcrumbs"><li>Start</li></ul><ul><li><a href="#a">One</a></li><li><a href="#b">Two</a></li><li>
<a href="#c">Three</a></li></ul><main><h1>Locks</h1><p>Open the <b>upper</b> gate.</p><h2 id="a">Steps</h2><ol>
<li>Close the drain.</li><li>Wait.</li></ol>
<pre><code>lock --open 4</code></pre><table><tr><th>gate</th><th>width</th></tr><tr><td>upper</td>
<td>6 m</td></tr></table><p hidden>not shown</p></main><aside>Read also</aside><footer>Imprint</footer></body></html>"""


def test_page_keeps_structure_and_labels_without_boilerplate() -> None:
    found = files.read_file(PAGE.encode(), ".html", "locks.html")
    assert found.text == (
        "# Locks\n\nOpen the **upper** gate.\n\n## Steps\n\n1. Close the drain.\n2. Wait.\n\n"
        "```\nlock --open 4\n```\n\n| gate | width |\n| --- | --- |\n| upper | 6 m |"
    )
    kinds = [block.kind for block in found.blocks]
    assert kinds == ["heading", "paragraph", "heading", "steps", "code", "table"]
    assert (found.title, found.language, list(found.tags), found.security) == (
        "Locks",
        "en",
        ["lock", "tide"],
        "internal",
    )
    contents = PAGE.replace("<main>", "<div>").replace("</main>", "</div>")
    assert files.read_file(contents.encode(), ".html", "locks.html").text == found.text


def test_encrypted_docx_is_refused_with_the_reason(tmp_path: Path) -> None:
    content = bytearray(make_zip_bomb(tmp_path / "a.docx")[:])
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(mark)
        while place >= 0:
            content[place + flags] |= 1
            place = content.find(mark, place + 4)
    with pytest.raises(SourceError, match="encrypted"):
        files.read_file(bytes(content), ".docx", "a.docx")


def test_pdf_of_images_and_expanding_docx_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no text"):
        files.read_file(make_images_only(), ".pdf", "scan.pdf")
    bomb = make_zip_bomb(tmp_path / "bomb.docx")
    assert len(bomb) < 300_000
    with pytest.raises(SourceError, match="At most"):
        files.read_file(bomb, ".docx", "bomb.docx")


def test_too_long_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST", 1_000)
    for name, content in (("a.txt", "word " * 300), ("b.md", "word " * 2_000)):
        with pytest.raises(SourceError, match="Split the file"):
            files.read_file(content.encode(), Path(name).suffix, name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Überführung".encode("utf-16"), "Überführung"),
        ("caf\u00e9 on the pier".encode("cp1252"), "caf\u00e9 on the pier"),
        (b"\xef\xbb\xbfpier\r\nharbour\rboat", "pier\nharbour\nboat"),
    ],
)
def test_encoding_and_ends_of_lines_are_detected(content: bytes, words: str) -> None:
    assert files.read_file(content, ".txt", "a.txt").text == words


def test_bad_files_are_reported_and_the_others_loaded(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", good__md="# Good\n\nWords.", empty__md="")
    secret = tmp_path / "secret.md"
    secret.write_text("not for the graph")
    (folder / "link.md").symlink_to(secret)
    (folder / "away").symlink_to(tmp_path)
    (folder / "nothing.md").symlink_to(folder / "absent.md")
    (folder / "two\nlines.md").write_text("# Two lines\n\nA name of two lines.")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        try:
            Path(os.fsdecode(b"caf\xe9.md")).write_text("latin name")
        except OSError:
            pytest.skip("this file system has UTF-8 names only")
    report = load_bare(kg, folder)
    assert paths(kg) == {"good.md", "two\nlines.md"}
    reasons = " ".join(rejection.reason for rejection in report.rejections)
    assert report.rejected == 5
    for words in ("empty", "out of the folder", "not UTF-8"):
        assert words in reasons
    assert "not for the graph" not in str(list(kg.store.graph(mint("graph", "src", "files", "notes", "link.md"))))


def test_file_that_changes_or_vanishes_while_it_is_read_is_rejected_and_not_pruned(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    folder = write(tmp_path / "notes", a__md="# A\n\nWords.", b__md="# B\n\nOther.", c__md="# C\n\nThird.")
    found = find_files([str(folder)], Settings(_env_file=None), files.FORMATS, lenient=True)  # type: ignore[call-arg]
    (folder / "a.md").write_text("changed")
    (folder / "b.md").unlink()
    items = list(build_loader("files", Settings(_env_file=None)).read(found.files))  # type: ignore[call-arg]
    reasons = [item.reason for item in items if hasattr(item, "reason") and item.reason]
    assert ["changed" in reasons[0], "Cannot read" in reasons[1], len(reasons)] == [True, True, 2]


def test_folder_that_vanished_is_an_error_and_removes_nothing(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", a__md="# A\n\nWords.")
    load_bare(kg, folder)
    shutil.rmtree(folder)
    with pytest.raises(SourceError):
        load(kg, "files", [str(folder)], prune=True, index=False)
    assert paths(kg) == {"a.md"}


def test_two_folders_of_one_name_do_not_replace_each_other(kg: KnowledgeGraph, tmp_path: Path) -> None:
    write(tmp_path / "one" / "docs", a__md="# One\n\nWords of one.")
    write(tmp_path / "two" / "docs", a__md="# Two\n\nWords of two.")
    load_bare(kg, tmp_path / "one" / "docs")
    assert load_bare(kg, tmp_path / "two" / "docs").rejected == 1
    assert load_bare(kg, tmp_path / "two" / "docs", collection="second").loaded == 1
    assert described(kg, "docs", "a.md")[DCTERMS.title] == Literal("One")
    with pytest.raises(InvalidInputError):
        build_loader("files", Settings(_env_file=None), {"collection": "a/b"})  # type: ignore[call-arg]


def test_law_that_a_note_names_is_linked(kg: KnowledgeGraph) -> None:
    load(kg, "files", [str(HANDBOOK / "pumps")], index=False)
    rows = select(kg.store.query, "SELECT DISTINCT ?law WHERE { ?unit a kg:Chunk ; eli:cites ?law }")
    assert any("1344" in term_text(row["law"]) for row in rows)


@pytest.mark.exhaustive
def test_ten_thousand_files_are_loaded(kg: KnowledgeGraph, tmp_path: Path) -> None:
    for number in range(10_000):
        write(
            tmp_path / "many" / str(number % 100), **{f"n{number}__md": f"# Note {number}\n\nIts number is {number}."}
        )
    report = load_bare(kg, tmp_path / "many")
    assert (report.loaded, report.rejected) == (10_000, 0)
