"""The server as a process: a renewed certificate is used without a restart."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from kg.server import http_server
from kg.server.http_server import Server
from tests.waiting import until


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate that is signed by itself, and its key."""
    cert, key = folder / f"{name}-cert.pem", folder / f"{name}-key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-subj", f"/CN={name}", "-out", str(cert), "-keyout", str(key)]
    subprocess.run([*make, *files], check=True, capture_output=True, timeout=60)
    return cert, key


async def application(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_a_renewed_certificate_is_used_once_both_files_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "RENEW_S", 0.02)
    looks = []
    renew = Server._renew
    monkeypatch.setattr(Server, "_renew", lambda self: (renew(self), looks.append(1)))
    used, new = make_certificate(tmp_path, "used"), make_certificate(tmp_path, "new")
    before, after = used[0].read_text(), new[0].read_text()
    config = uvicorn.Config(
        application, log_config=None, lifespan="off", ssl_certfile=str(used[0]), ssl_keyfile=str(used[1])
    )
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    server = Server(config, "https://127.0.0.1", None, ())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        until(lambda: server.started)
        assert ssl.get_server_certificate(address) == before
        used[0].write_text(after)
        seen = len(looks)
        until(lambda: len(looks) > seen + 1)
        assert ssl.get_server_certificate(address) == before, "the key is still another one's"
        used[1].write_text(new[1].read_text())
        until(lambda: ssl.get_server_certificate(address) == after)
    finally:
        server.should_exit = True
        thread.join()
