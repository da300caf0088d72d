"""Entities that a link asserts to be the same are presented as one, until a person rejects the link."""

from __future__ import annotations

from pathlib import Path

import pytest

from kg.access.actors import CURATE, WRITE, Actor
from kg.errors import InvalidInputError
from kg.knowledge_graph import SENDER
from kg.tools.claims.review import review_claim
from kg.tools.documents.entities import entity_lookup, explain_entity
from kg.tools.documents.same_entities import group_entities
from kg.vocabulary import BASE
from loaders.sources import load
from tests.folders import open_graph

NOTES = {
    "one.md": "# Notes\n\nThe gateway uses Zandvault. Restart Zandvault.\n\n- **Zandvault**: the store of keys.\n",
    "two.md": "# Report\n\nThe contract with Zandvault ends in May. It is maintained by Zandvault.\n",
}


def entity(kind: str) -> str:
    return f"{BASE}id/entity/{kind}/zandvault"


def test_groups_follow_links_in_any_order() -> None:
    same = {"a": ["b"], "b": ["a", "d"], "d": ["b"]}
    for order in ("abcd", "dcba", "adbc"):
        groups = group_entities(order, same)
        assert sorted(map(sorted, groups)) == [["a", "b", "d"], ["c"]]


def test_one_name_of_several_types_is_one_entity_until_its_link_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    with open_graph(tmp_path / "data") as kg:
        load(kg, "files", [str(folder)])
        found = entity_lookup(kg, "Zandvault").entities
        assert len(found) == 1
        [other] = found[0].same_as
        assert {found[0].id, other.id} <= {entity(kind) for kind in ("product", "organization", "term")}
        explained = explain_entity(kg, "Zandvault")
        assert explained.id == found[0].id
        assert {file.path for file in explained.files} == {"notes/one.md", "notes/two.md"}
        [link] = explained.same_as
        assert link.id == other.id
        assert link.claim is not None
        assert (link.confidence or 0) >= 0.72
        sender = SENDER.set(Actor("ada", frozenset({WRITE, CURATE})))
        try:
            review_claim(kg, link.claim, "reject")
        finally:
            SENDER.reset(sender)
        assert len(entity_lookup(kg, "Zandvault").entities) == 2
        assert explain_entity(kg, found[0].id).same_as == []
        with pytest.raises(InvalidInputError, match=r"'Zandvault', "):
            explain_entity(kg, "Zandvault")
