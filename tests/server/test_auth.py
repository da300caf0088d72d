"""The local token: only its own user can read it, only its server takes it, and it ends with that server."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from starlette.requests import Request

from kg.actors import ADMIN, EVERYONE, HOLDER, READ, TOKEN_FILE, WRITE
from kg.errors import ForbiddenError, StoreError, UnauthorizedError
from kg.server.auth import LocalToken, read_token


def request(*values: bytes) -> Request:
    return Request({"type": "http", "headers": [(b"authorization", value) for value in values]})


def test_only_its_own_user_can_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        LocalToken(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [TOKEN_FILE]


def test_what_another_process_left_or_holds_open_does_not_get_it(tmp_path: Path) -> None:
    partial = tmp_path / f".{TOKEN_FILE}.partial"
    partial.write_text("left by a crash")
    partial.chmod(0o666)
    with partial.open() as opened:
        LocalToken(tmp_path)
        assert opened.read() == "left by a crash"
    assert stat.S_IMODE((tmp_path / TOKEN_FILE).stat().st_mode) == 0o600


def test_a_link_is_replaced_and_what_it_points_at_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / TOKEN_FILE).symlink_to(victim)
    LocalToken(tmp_path)
    assert (victim.read_text(), (tmp_path / TOKEN_FILE).is_symlink()) == ("mine", False)


def test_its_holder_is_an_admin_and_everyone_else_reads_and_writes(tmp_path: Path) -> None:
    token = LocalToken(tmp_path)
    secret = read_token(tmp_path)
    assert secret is not None
    assert token.actor(request()) == EVERYONE
    assert token.actor(request(f"bearer  {secret} ".encode())) == HOLDER
    assert HOLDER.scopes - EVERYONE.scopes == {ADMIN}
    assert EVERYONE.scopes == {READ, WRITE}
    with pytest.raises(ForbiddenError, match=r"(?i)an update .*'admin'.*token"):
        EVERYONE.require(ADMIN, "an update")
    HOLDER.require(ADMIN, "an update")


@pytest.mark.parametrize("header", [b"Bearer", b"Bearer ", b"Bearer \xe9", b"Bearer x", b"Basic dXNlcjpwYXNz", b""])
def test_other_credentials_are_refused_never_taken_for_everyones(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(UnauthorizedError):
        LocalToken(tmp_path).actor(request(header))


def test_a_beginning_of_it_is_not_enough(tmp_path: Path) -> None:
    token = LocalToken(tmp_path)
    secret = read_token(tmp_path)
    assert secret is not None
    assert len(secret) >= 43, "256 bits"
    for given in (secret[:-1], secret + "x", secret.swapcase()):
        with pytest.raises(UnauthorizedError):
            token.actor(request(f"Bearer {given}".encode()))


def test_each_server_has_its_own_and_takes_no_older_one(tmp_path: Path) -> None:
    old = LocalToken(tmp_path)
    given = read_token(tmp_path)
    new = LocalToken(tmp_path)
    with pytest.raises(UnauthorizedError, match="Invalid token"):
        new.actor(request(f"Bearer {given}".encode()))
    old.remove()
    assert read_token(tmp_path) is not None, "an older server does not take away the newer one's"
    new.remove()
    new.remove()
    assert read_token(tmp_path) is None


def test_a_file_that_is_no_token_is_none(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(b"\xff\xfe")
    assert read_token(tmp_path) is None


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="absent"):
        LocalToken(tmp_path / "absent")
