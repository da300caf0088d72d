"""The manifest of connectors: what is valid, and that messages name the place and no secret."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.connectors.manifest import load_manifest
from kg.errors import InvalidInputError
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings
from tests.connectors.conftest import entry, settings_of


def refusal(tmp_path, *entries) -> str:
    with pytest.raises(InvalidInputError) as caught:
        load_manifest(settings_of(tmp_path, *entries))
    return str(caught.value)


def test_without_the_setting_there_are_no_connectors():
    assert load_manifest(Settings(_env_file=None)).connectors == []


def test_a_manifest_is_read_from_the_setting_and_from_a_file(tmp_path):
    file = tmp_path / "connectors.json"
    file.write_text(json.dumps({"connectors": [entry()]}))
    inline = load_manifest(settings_of(tmp_path, entry()))
    assert load_manifest(settings_of(tmp_path, connectors=str(file))) == inline
    assert [tool.name for tool in inline.connectors[0].remote_tools or ()][2] == "wikidata.get_claims"


def test_a_legacy_entry_without_remote_tools_loads(tmp_path):
    legacy = {"id": "perplexity", "version": "1", "endpoint": "https://legacy.example.org/mcp"}
    [found] = load_manifest(settings_of(tmp_path, legacy)).connectors
    assert found.remote_tools is None
    assert (found.auth.type, found.ttl_seconds, found.enabled) == ("none", 1_800, True)


@pytest.mark.parametrize(
    "name",
    [
        "", "Wikidata.sparql", "wikidata sparql", "wikidata.sparql\n", "a;DROP GRAPH", "../../etc/passwd", "a\x00b",
        "<script>", "{{7*7}}", "$(id)", "wikidata.spärql", "a" * 101, "a'--", "wikidata\u2028x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["id", "tool", "tag"])
def test_a_name_with_anything_but_letters_digits_dots_and_dashes_is_refused(tmp_path, name, place):
    bad = {
        "id": entry(id=name),
        "tool": entry(remoteTools=[{"name": name}]),
        "tag": entry(remoteTools=[{"name": "a", "tags": [name]}]),
    }[place]
    message = refusal(tmp_path, bad)
    assert "connectors.0." in message
    assert message.isprintable()


@given(st.text(min_size=1, max_size=20))
def test_only_names_of_the_pattern_are_accepted(tmp_path_factory, name):
    valid = all(character in "abcdefghijklmnopqrstuvwxyz0123456789._-" for character in name)
    settings = settings_of(tmp_path_factory.getbasetemp(), entry(remoteTools=[{"name": name}]))
    if valid:
        assert load_manifest(settings).connectors[0].remote_tools[0].name == name
    else:
        with pytest.raises(InvalidInputError):
            load_manifest(settings)


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        (entry(color="red"), "connectors.0.color"),
        (entry(remoteTools=[{"name": "a", "run": "x"}]), "connectors.0.remoteTools.0.run"),
        (entry(ttl_seconds=3), "connectors.0.ttl_seconds"),
        (entry(ttlSeconds="30"), "connectors.0.ttlSeconds"),
        (entry(enabled=1), "connectors.0.enabled"),
        (entry(metadata={"dumpDate": "yesterday"}), "connectors.0.metadata.dumpDate"),
        (entry(metadata={"owner": "x"}), "connectors.0.metadata.owner"),
        (entry(auth={"type": "oauth"}), "connectors.0.auth.type"),
        (entry(auth={"type": "bearer"}), "connectors.0.auth"),
        (entry(auth={"type": "none", "token": "hunter2"}), "connectors.0.auth"),
        (entry(endpoint="ftp://example.org/"), "connectors.0.endpoint"),
        (entry(endpoint="https://user:hunter2@example.org/"), "connectors.0.endpoint"),
        (entry(endpoint="https://example.org/?key=hunter2"), "connectors.0.endpoint"),
        (entry(endpoint="http://example.org/mcp", auth={"type": "bearer", "token": "hunter2"}), "connectors.0"),
        (entry(remoteTools=[{"name": "a"}, {"name": "a"}]), "connectors.0"),
        (entry(remoteTools=[{"name": "a", "description": "x\x1b[31m"}]), "connectors.0.remoteTools.0.description"),
        ({}, "connectors.0.id"),
        (7, "connectors.0"),
    ],
)
def test_a_message_names_the_place_and_no_value(tmp_path, bad, place):
    message = refusal(tmp_path, bad)
    assert place in message
    assert "hunter2" not in message


def test_two_connectors_with_one_id_are_refused(tmp_path):
    assert "wikidata" in refusal(tmp_path, entry(), entry())


@pytest.mark.parametrize(
    "given", ["[]", "{", '{"connectors": [], "connectors": []}', '{"tools": []}', "/no/such/file.json", "[" * 50_000]
)
def test_what_is_no_manifest_is_refused(tmp_path, given):
    with pytest.raises(InvalidInputError):
        load_manifest(settings_of(tmp_path, connectors=given))


def test_a_file_that_is_not_utf_8_or_too_large_is_refused(tmp_path):
    for content in (b"\xff\xfe{}", b" " * (2 << 20)):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(InvalidInputError):
            load_manifest(settings_of(tmp_path, connectors=str(tmp_path / "bad.json")))


def test_a_graph_with_an_invalid_manifest_is_not_opened(tmp_path):
    with pytest.raises(InvalidInputError):
        KnowledgeGraph.open(tmp_path / "data", settings_of(tmp_path, entry(id="A B")))
    assert not (tmp_path / "data").exists()
