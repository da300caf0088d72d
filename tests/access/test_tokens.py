"""Tokens: only hashes are stored, changes of other processes count at once, and a damaged file never opens a door."""

from __future__ import annotations

import errno
import re
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.access.actors import ADMIN, READ, SCOPES, WRITE
from kg.access.tokens import PREFIX, RESERVED, Tokens, hash_secret, parse_expiry, write_private
from kg.data_directory import DataDirectory
from kg.errors import ConflictError, InvalidInputError, NotFoundError, StoreError, StoreVersionError
from kg.store.lock import DirectoryLock


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(DataDirectory(tmp_path))


def test_a_secret_has_256_bits_and_is_never_stored(tokens: Tokens, tmp_path: Path) -> None:
    secret = tokens.create("alice", [READ, WRITE], ["editors"])
    assert re.fullmatch(r"qc_[A-Za-z0-9_-]{43}", secret)
    [file] = (tmp_path / "access").iterdir()
    assert secret.removeprefix(PREFIX) not in file.read_text()
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    found = tokens.find(hash_secret(secret))
    assert found is not None
    assert (found.actor.name, found.actor.scopes, found.actor.groups) == ("alice", {READ, WRITE}, {"editors"})
    for other in (secret[:-1], secret.swapcase(), "", PREFIX):
        assert tokens.find(hash_secret(other)) is None


def test_another_process_makes_and_revokes_while_this_one_reads(tokens: Tokens, tmp_path: Path) -> None:
    other = Tokens(DataDirectory(tmp_path))
    assert not tokens.exist()
    secret = other.create("alice", [READ])
    assert tokens.exist()
    assert tokens.find(hash_secret(secret)) is not None
    other.revoke("alice")
    assert tokens.find(hash_secret(secret)) is None
    assert tokens.exist(), "revoking the last token does not open the server"
    assert [token.state for token in tokens.list()] == ["revoked"]


def test_an_expired_token_is_none(tokens: Tokens) -> None:
    secret = tokens.create("old", [READ], expires=datetime.now(UTC) - timedelta(seconds=1))
    assert tokens.find(hash_secret(secret)) is None
    assert tokens.list()[0].state == "expired"
    tokens.create("old", [READ])


def test_a_name_has_one_valid_token(tokens: Tokens) -> None:
    tokens.create("alice", [READ])
    with pytest.raises(ConflictError):
        tokens.create("alice", [READ])
    tokens.revoke("alice")
    with pytest.raises(NotFoundError):
        tokens.revoke("alice")
    tokens.create("alice", [ADMIN])


@pytest.mark.parametrize("name", ["", "Alice", "a b", "a/b", "alice@proxy", "é", "x" * 65, *sorted(RESERVED)])
def test_names_that_others_may_have_are_refused(tokens: Tokens, name: str) -> None:
    with pytest.raises(InvalidInputError):
        tokens.create(name, [READ])
    assert not tokens.exist()


@pytest.mark.parametrize("scopes", [[], ["root"], [READ, "Write"]])
def test_unknown_scopes_are_refused(tokens: Tokens, scopes: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="curate"):
        tokens.create("alice", scopes)


def test_concurrent_changes_are_all_kept(tmp_path: Path) -> None:
    def make(number: int) -> None:
        Tokens(DataDirectory(tmp_path)).create(f"client-{number}", [READ])

    threads = [threading.Thread(target=make, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Tokens(DataDirectory(tmp_path)).list()) == 12


def test_a_damaged_file_keeps_the_tokens_of_before_and_opens_nothing(tokens: Tokens, tmp_path: Path) -> None:
    secret = tokens.create("alice", [READ])
    assert tokens.find(hash_secret(secret)) is not None
    for damage in ("", "{", '{"version": 2, "tokens": []}', '{"version": 1, "tokens": [{"name": 5}]}'):
        write_private(tmp_path / "access" / "tokens.json", damage)
        assert tokens.find(hash_secret(secret)) is not None
        with pytest.raises(StoreError, match=r"tokens\.json"):
            Tokens(DataDirectory(tmp_path)).exist()


def test_a_revocation_that_could_not_be_read_counts_with_the_next_request(
    tokens: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tokens.create("alice", [READ])
    assert tokens.find(hash_secret(secret)) is not None
    Tokens(DataDirectory(tmp_path)).revoke("alice")

    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as failing:
        failing.setattr(Path, "read_text", fail)
        tokens.find(hash_secret(secret))
    assert tokens.find(hash_secret(secret)) is None


def test_a_file_of_a_newer_version_is_named_and_not_replaced(tokens: Tokens, tmp_path: Path) -> None:
    secret = tokens.create("alice", [READ])
    token = tokens.find(hash_secret(secret))
    assert token is not None
    path = tmp_path / "access" / "tokens.json"
    newer = '{"version": 99, "tokens": {"alice": []}}'
    path.write_text(newer)
    with pytest.raises(StoreVersionError, match=r"tokens\.json .*99.* up to 1"):
        Tokens(DataDirectory(tmp_path)).exist()
    assert tokens.find(hash_secret(secret)) == token
    with pytest.raises(StoreVersionError):
        tokens.revoke("alice")
    tokens.note_use(token)
    tokens.write_uses()
    assert path.read_text() == newer


def test_what_a_killed_process_was_writing_is_private_and_found(
    tokens: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(StoreError, match="killed"):
            tokens.create("alice", [READ])
    [left] = list((tmp_path / "access").iterdir())
    assert left in DataDirectory(tmp_path).find("cache")
    assert left.stat().st_mode & 0o077 == 0


def test_the_last_use_is_recorded_once_a_minute(tokens: Tokens, tmp_path: Path) -> None:
    secret = tokens.create("alice", [READ])
    token = tokens.find(hash_secret(secret))
    assert token is not None
    assert tokens.note_use(token)
    assert not tokens.note_use(token)
    tokens.write_uses()
    [listed] = Tokens(DataDirectory(tmp_path)).list()
    assert listed.used is not None
    assert tokens.find(hash_secret(secret)) == listed


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "access").write_text("a file")
    with pytest.raises(StoreError, match="access"):
        Tokens(DataDirectory(tmp_path)).create("alice", [READ])


@given(st.integers(1, 99_999), st.sampled_from("hd"))
def test_an_expiry_is_an_age(number: int, unit: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    until = parse_expiry(f"{number}{unit}", now)
    assert until is not None
    assert until - now == (timedelta(hours=number) if unit == "h" else timedelta(days=number))


@pytest.mark.parametrize("text", ["", "90", "0d", "-1d", "1w", "1.5d", "99999y", "90d ", "٩d"])
def test_another_expiry_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_expiry(text, datetime.now(UTC))
    assert parse_expiry("never", datetime.now(UTC)) is None


def test_tokens_may_be_made_before_the_first_load(tokens: Tokens, tmp_path: Path) -> None:
    tokens.create("alice", [READ])
    with DirectoryLock(tmp_path):
        assert tokens.exist()


def test_every_scope_can_be_given(tokens: Tokens) -> None:
    secret = tokens.create("all", SCOPES)
    token = tokens.find(hash_secret(secret))
    assert token is not None
    assert token.actor.scopes == frozenset(SCOPES)
