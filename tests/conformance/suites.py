"""The folders of the W3C's test suites: those that everybody can fetch, and newer ones where they are at hand.

Two source distributions on the package index contain suites: rdflib's the one for SPARQL 1.1 as of 2013, pySHACL's
the one for SHACL. ``python -m tests.conformance.suites`` fetches both once, by pinned hash, into a cache. The current
suites for SPARQL 1.1 and 1.2 are on no package index: they are run from ``../shared/w3c``, or from ``w3c`` in the
folder that QUADCITE_SHARED names, where there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Archive:
    """A source distribution, and the folder in it that becomes `suite`."""

    requirement: str
    sha256: str
    folder: str
    suite: str


ARCHIVES = (
    Archive(
        "rdflib==7.6.0",
        "6c831288d5e4a5a7ece85d0ccde9877d512a3d0f02d7c06455d00d6d0ea379df",
        "rdflib-7.6.0/test/data/suites/w3c/sparql11",
        "sparql11-2013",
    ),
    Archive(
        "pyshacl==0.40.1",
        "011e3cf1a68b31747cb762ba3d755ae1bdcc464c8fad0dc212a9adc550719552",
        "pyshacl-0.40.1/test/resources/sht_tests",
        "shacl",
    ),
)


def cache() -> Path:
    """Return the folder of the fetched suites, whether or not it exists. It changes with the pinned hashes."""
    return user_cache_path("quadcite") / "w3c" / "-".join(archive.sha256[:12] for archive in ARCHIVES)


def shared() -> Path:
    return Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "w3c"


def sparql() -> Iterator[Path]:
    """Yield the folders of SPARQL suites that exist."""
    folders = (cache() / "sparql11-2013", shared() / "sparql11", shared() / "sparql12")
    return (folder for folder in folders if folder.is_dir())


def shacl() -> Path | None:
    """Return the folder of the SHACL suite: the Working Group's where it is at hand, else pySHACL's copy of it."""
    folders = (shared() / "shacl" / "tests", cache() / "shacl")
    return next((folder for folder in folders if folder.is_dir()), None)


def fetch() -> Path:
    """Fetch the suites unless the cache has them, and return their folder. Raises SystemExit with what failed."""
    target = cache()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        staging = Path(name)
        for archive in ARCHIVES:
            _unpack(_download(archive, staging), archive, staging / "suites")
        try:
            (staging / "suites").rename(target)
        except OSError:  # another process was first
            if not target.is_dir():
                raise
    return target


def _download(archive: Archive, staging: Path) -> Path:
    requirements = staging / f"{archive.suite}.txt"
    requirements.write_text(f"{archive.requirement} --hash=sha256:{archive.sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", archive.requirement.partition("==")[0], "--require-hashes"]
    command += ["--dest", str(staging / archive.suite), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        sys.exit(f"Cannot download {archive.requirement}, which contains a W3C test suite: {done.stderr.strip()}")
    (path,) = (staging / archive.suite).glob("*.tar.gz")
    return path


def _unpack(path: Path, archive: Archive, target: Path) -> None:
    with tarfile.open(path) as file:
        members = [member for member in file if member.name.startswith(archive.folder + "/")]
        file.extractall(path.parent, members=members, filter="data")
    target.mkdir(exist_ok=True)
    shutil.move(path.parent / archive.folder, target / archive.suite)


if __name__ == "__main__":
    print(fetch())
