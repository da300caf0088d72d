"""Files of policies: read again after a change, all or none of them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from kg.access import policy_files
from kg.access.actors import Actor
from kg.access.policies import Action, Policies, Resource
from kg.errors import InvalidInputError
from tests.access.made_up import NAMED

ACTIONS = (*NAMED, Action("read", ("Endpoint",), ("endpoints",)), Action("write", ("Endpoint",), ("endpoints",)))
RESOURCES = tuple(Resource("Endpoint", name, {"scope": name}) for name in ("read", "write"))
READER = Actor("x", frozenset({"read"}))
CLOSED = "forbid(principal, action, resource);"


@pytest.fixture(autouse=True)
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_files, "CHECKED_S", 0.0)


def test_a_change_counts_from_the_next_decision_on(tmp_path: Path) -> None:
    policies = Policies(ACTIONS, RESOURCES, tmp_path)
    first = policies.current.version
    assert policies.current.is_default
    assert policies.find_callable(READER, "Endpoint") == {"read"}
    (tmp_path / "a.cedar").write_text(CLOSED)
    assert not policies.decide(READER, "read").allowed
    assert policies.decide(READER, "read").policies == ("a.cedar:1",)
    assert policies.find_callable(READER, "Endpoint") == frozenset()
    assert policies.current.version != first
    (tmp_path / "a.cedar").unlink()
    assert policies.decide(READER, "read").allowed
    assert policies.current.version == first


def test_an_invalid_file_keeps_all_policies_of_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.cedar").write_text(CLOSED)
    policies = Policies(ACTIONS, RESOURCES, tmp_path)
    (tmp_path / "a.cedar").write_text("")
    (tmp_path / "b.cedar").write_text("forbid(")
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert not policies.decide(READER, "read").allowed
    assert len(caplog.records) == 1
    assert policies.problem is not None
    assert "b.cedar" in policies.problem
    (tmp_path / "b.cedar").write_text(" ")
    assert policies.decide(READER, "read").allowed
    assert policies.problem is None


def test_a_folder_that_disappears_keeps_the_policies(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "a.cedar").write_text(CLOSED)
    policies = Policies(ACTIONS, RESOURCES, folder)
    folder.rename(tmp_path / "away")
    assert not policies.decide(READER, "read").allowed
    assert policies.problem is not None
    (tmp_path / "away").rename(folder)
    assert not policies.decide(READER, "read").allowed
    assert policies.problem is None


def test_a_file_of_the_name_of_the_default_one_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "default.cedar").write_text('@id("all") permit(principal, action, resource);')
    policies = Policies(ACTIONS, RESOURCES, tmp_path)
    assert policies.decide(READER, "write").policies == ("all",)


def test_files_that_are_no_policies_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("forbid(")
    (tmp_path / ".a.cedar").write_text("forbid(")
    (tmp_path / "b.cedar").mkdir()
    assert Policies(ACTIONS, RESOURCES, tmp_path).current.is_default


def test_the_first_set_must_be_valid(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="QUADCITE_POLICIES"):
        Policies(ACTIONS, RESOURCES, tmp_path / "none")
    (tmp_path / "a.cedar").write_bytes(b"\xff")
    with pytest.raises(InvalidInputError, match="QUADCITE_POLICIES"):
        Policies(ACTIONS, RESOURCES, tmp_path)


def test_the_folder_is_looked_at_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_files, "CHECKED_S", 3600.0)
    policies = Policies(ACTIONS, RESOURCES, tmp_path)
    (tmp_path / "a.cedar").write_text(CLOSED)
    assert policies.decide(READER, "read").allowed


def test_the_same_size_and_time_of_another_file_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "a.cedar").write_text(CLOSED)
    policies = Policies(ACTIONS, RESOURCES, tmp_path)
    stat = (tmp_path / "a.cedar").stat()
    (tmp_path / "new").write_text("permit(principal, action, resource);"[:-1] + ";")
    os.utime(tmp_path / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    (tmp_path / "new").rename(tmp_path / "a.cedar")
    assert policies.decide(READER, "read").allowed
