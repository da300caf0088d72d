"""Two hosts of the tests' own: network namespaces with a cable between them, and a certificate authority."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import ipaddress
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

T = TypeVar("T")

NAME = "kg.example.org"
SERVER, CLIENT = "10.213.77.1", "10.213.77.2"
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Hosts:
    """The names of the two namespaces. On the client, `NAME` is the address of the server."""

    server: str
    client: str

    def start(
        self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str], host: str | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process on the server, or on another `host`."""
        with log.open("ab") as output:
            return subprocess.Popen(
                ["/usr/bin/env", "ip", "netns", "exec", host or self.server, *command],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(environment),
            )  # fmt: skip

    def on_client(self, work: Callable[[], T]) -> T:
        """Run `work` on the client: all of its sockets are those of that host."""
        return self._run(self.client, work)

    def on_server(self, work: Callable[[], T]) -> T:
        """Run `work` on the server."""
        return self._run(self.server, work)

    def _run(self, host: str, work: Callable[[], T]) -> T:
        outcome: list[T] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                with open(f"/run/netns/{host}") as namespace:
                    libc = ctypes.CDLL(None, use_errno=True)
                    if libc.setns(namespace.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                outcome.append(work())
            except BaseException as error:  # noqa: BLE001 -- raised again in the thread of the test
                raised.append(error)

        # A thread is in a network namespace of its own, and takes the namespace with it when it ends.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]
        return outcome[0]


def require(program: str, package: str) -> str:
    """Return the path of a program. Skip the test if it is not installed."""
    if (path := shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")) is None:
        pytest.skip(f"needs {program}: apt-get install {package}")
    return path


@contextlib.contextmanager
def two_hosts() -> Iterator[Hosts]:
    """Make two hosts, connected by a cable. Skips the test without the right to make them."""
    require("ip", "iproute2")
    suffix = secrets.token_hex(3)
    hosts = Hosts(f"kg-s-{suffix}", f"kg-c-{suffix}")

    def ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["/usr/bin/env", "ip", *words], capture_output=True, text=True, check=check)

    if ip("netns", "add", hosts.server, check=False).returncode:
        pytest.skip("needs the right to make network namespaces (root)")
    try:
        ip("netns", "add", hosts.client)
        ip("link", "add", "eth0", "netns", hosts.server, "type", "veth", "peer", "name", "eth0", "netns", hosts.client)
        for host, address in ((hosts.server, SERVER), (hosts.client, CLIENT)):
            ip("-n", host, "address", "add", f"{address}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "link", "set", "eth0", "up")
        yield hosts
    finally:
        for host in (hosts.server, hosts.client):
            ip("netns", "delete", host, check=False)


@contextlib.contextmanager
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Resolve `NAME` to the server, as the name service of the client would."""
    resolve = socket.getaddrinfo

    def find(host: object, *arguments: object, **options: object) -> object:
        name = host.decode() if isinstance(host, bytes) else host
        return resolve(SERVER if name == NAME else host, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", find)
        yield


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, and wait for it. Each of them ends well on SIGTERM."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.returncode == 0


def write_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Write an authority, a certificate of it for `NAME` and `SERVER`, and its key; return their files."""
    now = datetime.datetime.now(datetime.UTC)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
    days = datetime.timedelta(days=1)

    def begin(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(authority).public_key(public)
        builder = builder.serial_number(x509.random_serial_number())
        return builder.not_valid_before(now - days).not_valid_after(now + days)

    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    root = (
        begin(authority, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    names = [x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address(SERVER))]
    leaf = (
        begin(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)]), key.public_key())
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files = folder / "authority.pem", folder / "fullchain.pem", folder / "privkey.pem"
    files[0].write_bytes(root.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    files[2].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
