"""Secrets in files: found as whole spans, replaced before anything is stored, and kept only where a setting says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings
from pyoxigraph import Literal

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.settings import Settings
from kg.vocabulary import KG, PROV_GRAPH, mint
from loaders import pipeline
from loaders.files.graph.watched_folder import WatchedFolder
from loaders.files.loader import read_file
from loaders.files.redaction import redact_file
from loaders.files.secrets import find_secrets, redact
from loaders.quarantine import Quarantine
from loaders.sources import build_loader, load, load_changed
from tests.secret_corpus import Case, build_corpus

PRECISION = 0.99
RECALL = 0.95

HIGH_ENTROPY = {"Base64 High Entropy String", "Hex High Entropy String"}
"""What detect-secrets rates by entropy alone, as hashes and images are."""


@pytest.fixture(scope="module")
def corpus() -> list[Case]:
    return build_corpus()


def test_corpus_reaches_the_precision_and_recall_of_whole_spans(corpus: list[Case]) -> None:
    right = missed = wrong = 0
    for case in corpus:
        found = find_secrets(case.text)
        whole = [any(each.start <= start and end <= each.end for each in found) for start, end in case.secrets]
        right += sum(whole)
        missed += whole.count(False)
        wrong += sum(not any(each.start < end and start < each.end for start, end in case.secrets) for each in found)
    assert right / (right + missed) >= RECALL
    assert right / (right + wrong) >= PRECISION


def test_nothing_that_detect_secrets_knows_by_its_form_is_left(corpus: list[Case], tmp_path: Path) -> None:
    texts = {"before.txt": [case.text for case in corpus if case.secrets]}
    texts["after.txt"] = [redact(text).text for text in texts["before.txt"]]
    found: dict[str, int] = {}
    for name, lines in texts.items():
        path = tmp_path / name
        path.write_text("\n".join(lines))
        with default_settings():
            secrets = SecretsCollection(root=str(tmp_path))
            secrets.scan_file(name)
        left = {each.secret_value for _, each in secrets if each.type not in HIGH_ENTROPY}
        found[name] = len({each for each in left if each and not each.startswith("[redacted")})
    assert found["before.txt"] > 50
    assert found["after.txt"] == 0


@pytest.mark.parametrize("seed", range(8))
def test_text_between_secrets_and_its_offsets_are_kept(corpus: list[Case], seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(case.text for case in chance.sample(corpus, 8))
    done = redact(text)
    assert redact(done.text).text == done.text
    spans = [(each.start, each.end) for each in find_secrets(text)]
    for offset in [*(chance.randrange(len(text)) for _ in range(40)), *(edge for span in spans for edge in span)]:
        if not any(start < offset < end for start, end in spans):
            new = done.translate(offset)
            rest = next((start for start, _ in spans if start >= offset), len(text)) - offset
            assert done.text[new : new + rest] == text[offset : offset + rest]


@pytest.mark.parametrize("division", ["**", "\u200b", "\u00ad", "\n", "\\\n", "\n  "])
def test_divided_token_is_found_whole(division: str) -> None:
    token = "ghp_" + "k3Lm9Qx2Rt7Vw1Zb5Nc8Df4Gh6Jp0Sy2Uq3A"
    text = f"Before {token[:17]}{division}{token[17:]} after\nand more ghp_ words"
    assert redact(text).text == "Before [redacted GitHub token] after\nand more ghp_ words"
    assert redact(f"{token}{division}and").kinds == {"GitHub token": 1}


def test_lines_blocks_and_labels_of_a_file_are_kept() -> None:
    key = next(case.text for case in build_corpus() if "OPENSSH" in case.text)
    password = "Gezeiten7!"
    page = (
        f"---\ntitle: 'Lock, password: {password}'\ntags: [pump, 'token=a8Zk29sLq0Wm4x']\n---\n"
        f"# Lock\n\n{key}\n## Password: {password}\n\nLast line.\n"
    )
    found, kinds = redact_file(read_file(page.encode(), ".md", "lock.md"))
    assert kinds == {"private key": 1, "password": 1, "key or token": 1}
    for said in (found.text, found.title, *found.tags, *(block.title for block in found.blocks)):
        assert password not in (said or "")
    assert "OPENSSH" not in found.text
    heading = next(block for block in found.blocks if block.level == 2)
    assert found.text[heading.start : heading.end].strip() == f"## {heading.title}"
    line = page.split("\n").index("Last line.") + 1
    assert found.text[: found.text.index("Last line.")].count("\n") + (found.first_line or 0) == line


@pytest.mark.parametrize("ending", [".md", ".txt", ".html"])
def test_text_of_every_format_is_redacted(ending: str) -> None:
    said = "The password of the pump house is Ebbe2031!."
    page = f"<html><body><p>{said}</p></body></html>" if ending == ".html" else said
    found, kinds = redact_file(read_file(page.encode(), ending, "a"))
    assert found.text.strip() == "The password of the pump house is [redacted password]."
    assert kinds == {"password": 1}


def test_long_lines_take_time_in_proportion() -> None:
    for piece in (
        "password ",
        "token=",
        "-----BEGIN RSA PRIVATE KEY-----",
        "api_key: '",
        "://a:",
        "eyJa.",
        "|-",
        "password:\n",
        "password for a",
        "a" * 50,
    ):
        text = piece * (100_000 // len(piece))
        find_secrets(text)


@pytest.fixture
def kg(open_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    return open_graph()


def test_secrets_are_counted_in_the_report_and_in_provenance_and_stored_nowhere(
    kg: KnowledgeGraph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    password = "Ebbe2031Flut"
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "pump.md").write_text(f"# Pump\n\npassword: {password}\n\nhttps://anna:{password}@pumps.test/\n")
    (folder / "plain.md").write_text("# Plain\n\nNothing to hide.\n")
    (folder / "bad.md").write_text(f"---\nlang: password={password}\n---\nIts language is none.\n")
    report = load(kg, "files", [str(folder)])
    assert report.redacted == {"file/notes/pump.md": {"password": 2}, "file/notes/bad.md": {"password": 1}}
    assert report.to_dict()["redacted"] == report.redacted
    graph = mint("graph", "src", "files", "notes", "pump.md")
    said = {
        quad.object for quad in kg.store.graph(PROV_GRAPH) if quad.subject == graph and quad.predicate == KG.redacted
    }
    assert said == {Literal("password: 2")}
    chunk = next(quad.subject for quad in kg.store.graph(graph) if quad.predicate == KG.start)
    assert explain_iri(kg.store.query, chunk)[0].redacted == ("password: 2",)
    kg.store.close()
    for path in (path for path in kg.settings.data_dir.rglob("*") if path.is_file()):
        assert password.encode() not in path.read_bytes(), path
    assert password not in caplog.text
    assert password not in str(report.to_dict()) + str(report.warnings)


def test_file_whose_path_has_a_secret_is_refused_and_its_path_stored_nowhere(
    kg: KnowledgeGraph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    folder = tmp_path / "notes"
    (folder / f"old-{token}").mkdir(parents=True)
    (folder / f"old-{token}" / "pump.md").write_text("# Pump\n\nIt runs.\n")
    (folder / f"{token}.md").write_text("# Key\n\nWords.\n")
    (folder / "plain.md").write_text("# Plain\n\nNothing to hide.\n")
    report = load(kg, "files", [str(folder)])
    assert (report.loaded, report.rejected) == (1, 2)
    assert all("GitHub token" in each.reason for each in report.rejections)
    watched = WatchedFolder(kg, folder, None, load_changed)
    watched.load(watched.find_changes())
    assert not [path for path in watched.find_changes().paths if token in path]
    assert token not in caplog.text + str(report.to_dict()) + str(report.warnings) + str(kg.ingestion.list_events())
    kg.store.close()
    for path in (path for path in kg.settings.data_dir.rglob("*") if path.is_file()):
        assert token.encode() not in path.read_bytes(), path


TOKENS = [f"ghp_{start}B3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5" for start in "abc"]


def list_quarantined(kg: KnowledgeGraph) -> list[str]:
    """List the files in quarantine by their names."""
    entries, damaged = Quarantine(kg.settings.directory.quarantine, "files").entries()
    assert not damaged
    return sorted(Path(file).name for entry in entries for file in entry.files)


def test_file_refused_for_its_path_is_in_quarantine_until_it_is_renamed_or_removed(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    notes, others = tmp_path / "notes", tmp_path / "others"
    for folder in (notes, others):
        folder.mkdir()
        (folder / "plain.md").write_text(f"# Plain\n\nNothing to hide in {folder.name}.\n")
    first, second, link = (notes / f"{token}.md" for token in TOKENS)
    first.write_text("# Key\n\nWords.\n")
    second.write_text("# Other key\n\nOther text.\n")
    link.symlink_to(tmp_path / "nothing.md")
    load(kg, "files", [str(notes)])
    refused = "[redacted GitHub token].md"
    assert list_quarantined(kg) == [refused]
    load(kg, "files", [str(others)])
    load(kg, "files", [str(notes / "plain.md")])
    assert list_quarantined(kg) == [refused]
    first.rename(notes / "key.md")
    second.unlink()
    load(kg, "files", [str(notes)])
    assert list_quarantined(kg) == [refused]  # the link
    link.unlink()
    load(kg, "files", [str(notes)])
    assert list_quarantined(kg) == []
    kg.store.close()
    for path in (path for path in kg.settings.data_dir.rglob("*") if path.is_file()):
        assert not any(token.encode() in path.read_bytes() for token in TOKENS), path


def test_watched_file_refused_for_its_path_is_in_quarantine_until_it_is_renamed_or_removed(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "plain.md").write_text("# Plain\n\nNothing to hide.\n")
    first, second, _ = (notes / f"{token}.md" for token in TOKENS)
    for path in (first, second):
        path.write_text(f"# Key\n\nWords {path.stem[4]}.\n")
    refused = "[redacted GitHub token].md"

    def update(watched: WatchedFolder) -> list[str]:
        watched.load(watched.find_changes())
        return list_quarantined(kg)

    watched = WatchedFolder(kg, notes, None, load_changed)
    assert update(watched) == [refused]
    (notes / "plain.md").write_text("# Plain\n\nAnother text.\n")
    assert update(watched) == [refused]
    first.rename(notes / "key.md")
    assert update(watched) == [refused]  # the second one has the same place
    load(kg, "files", [str(notes)])
    assert list_quarantined(kg) == [refused]
    second.unlink()
    assert update(watched) == []
    second.write_text("# Key\n\nBack again.\n")
    assert update(watched) == [refused]
    second.unlink()
    (notes / "plain.md").write_text("# Plain\n\nA third text.\n")
    assert update(WatchedFolder(kg, notes, None, load_changed)) == []


def test_file_that_cannot_be_read_leaves_the_quarantine_when_it_is_gone(kg: KnowledgeGraph, tmp_path: Path) -> None:
    notes, others = tmp_path / "notes", tmp_path / "others"
    for folder in (notes, others):
        folder.mkdir()
        (folder / "plain.md").write_text(f"# Plain\n\nNothing to hide in {folder.name}.\n")
        (folder / "empty.md").write_text("")
    (notes / "link.md").symlink_to(tmp_path / "nothing.md")
    load(kg, "files", [str(notes)])
    load(kg, "files", [str(others)])
    assert list_quarantined(kg) == ["empty.md", "empty.md", "link.md"]
    (notes / "empty.md").unlink()
    (notes / "link.md").unlink()
    load(kg, "files", [str(others)])
    assert list_quarantined(kg) == ["empty.md", "empty.md", "link.md"]
    load(kg, "files", [str(notes)])
    assert list_quarantined(kg) == ["empty.md"]


def test_setting_keeps_the_secrets_of_a_collection_and_provenance_says_so(kg: KnowledgeGraph, tmp_path: Path) -> None:
    settings = Settings(unredacted_collections=("drills",), _env_file=None)  # type: ignore[call-arg]
    for name in ("drills", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("password: Ebbe2031Flut\n")
        report = pipeline.load(kg, build_loader("files", settings), [str(tmp_path / name)], index=False)
        assert bool(report.redacted) == (name == "notes")
        graph = mint("graph", "src", "files", name, "a.md")
        stored = kg.store.graph(graph)
        assert any("Ebbe2031Flut" in quad.object.value for quad in stored if isinstance(quad.object, Literal)) == (
            name == "drills"
        )
    chunk = mint("file", "drills", "a.md")
    why = explain_iri(kg.store.query, chunk)[0]
    assert why.redacted == ("off",)
    assert why.configuration["unredacted_collections"] == "drills"
