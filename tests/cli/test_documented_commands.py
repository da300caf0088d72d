"""Each command in the README and the chapters runs as it is on the fixtures, or has CAPITALS to be replaced."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from kg.cli.main import app
from kg.search.registry import MINILM
from kg.settings import settings
from tests import generated_docs

ROOT = Path(__file__).parent.parent.parent
ADDRESS = "http://127.0.0.1:8000"
PLACEHOLDER = re.compile(r"(?<![\w$])(FILE|FOLDER|HOST|OWNER|NAME|REVISION|GENERATION|SHAPES|DATA|DIR|ID|CLAIM)(?!\w)")
DATA = re.compile(r"\.(csv|jsonl?|parquet|xlsx|xml|sgml|html|ttl|trig|nt|nq|rq|bz2|toml)$")


def find_commands() -> list[str]:
    """The lines of the shell blocks that run kg or ask its server, continued ones joined, in the order of the pages."""
    found = []
    for page in generated_docs.pages():
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            lines = block.replace("\\\n", " ").splitlines()
            found += [line for line in lines if re.match(r"(\S*/)?(kg|curl|echo) ", line)]
    return list(dict.fromkeys(found))


def words_of(line: str) -> list[str]:
    return shlex.split(line, comments=True)


COMMANDS = find_commands()
RUNNABLE = [line for line in COMMANDS if not PLACEHOLDER.search(" ".join(words_of(line)))]


def test_most_commands_are_no_patterns() -> None:
    assert len(RUNNABLE) > 2 * (len(COMMANDS) - len(RUNNABLE))


@pytest.mark.parametrize("line", RUNNABLE)
def test_each_file_that_a_command_names_is_in_the_checkout(line: str) -> None:
    written = {words_of(other)[-1] for other in COMMANDS if " > " in other}
    for word in words_of(line):
        if (DATA.search(word) or word.startswith("fixtures")) and not word.startswith("http") and word not in written:
            assert list(ROOT.glob(word)), f"{word} does not exist, and is not in CAPITALS"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with what a checkout has, and a server on its data directory, which has the fixtures of all domains."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("fixtures", "shapes", "ontology"):
        (folder / name).symlink_to(ROOT / name)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving = subprocess.Popen(
        [Path(sys.executable).with_name("kg"), "serve", "--port", str(port)],
        cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_healthy(address)
        for source, base in (("climate", []), ("wikibase", ["--base", "climate"]), ("hansard", []), ("zoning", [])):
            run(folder, address, shlex.join(["kg", "load", source, f"fixtures/{source}", *base]))
        yield folder, address
    finally:
        serving.terminate()
        serving.wait(30)


def environment(folder: Path) -> dict[str, str]:
    """The environment without settings but those that the chapters ask for. There is no embedding model."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUADCITE_")}
    own = {"QUADCITE_UPDATES": "true", "QUADCITE_MODELS_DIR": str(folder / "no-models"), "QUADCITE_MODEL": MINILM}
    return {**kept, **own, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def wait_until_healthy(address: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            if httpx.get(f"{address}/health", timeout=5, trust_env=False).status_code < 500:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail("the server did not start")


def run(folder: Path, address: str, line: str) -> None:
    """Run a line of a chapter: kg in this process, which starts in a tenth of the time, and other commands by bash."""
    words = words_of(re.sub(r"^\S*/kg ", "kg ", line))
    if words[0] == "kg":
        given = {name: None for name in os.environ if name.startswith("QUADCITE_")} | environment(folder)
        settings.cache_clear()
        with chdir(folder):
            result = CliRunner().invoke(app, words[1:], env=given)
        settings.cache_clear()  # or other tests of this process would have those of the chapters
        assert result.exit_code == 0, f"{line}\n{result.stdout[-1_000:]}\n{result.stderr[-1_000:]}"
        return
    command = re.sub(r"^curl ", "curl -sS --noproxy '*' --fail-with-body ", line.replace(ADDRESS, address))
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stdout[-1_000:]}\n{done.stderr[-1_000:]}"


# A server is running, which kg compact and kg upgrade refuse, and a replica serves until it is stopped. Without a model
# nothing can wait for embeddings or compare them.
_NOT_RUN = re.compile(r"kg serve|kg replica|kg top|--wait|kg reindex|kg align|kg compact|kg upgrade")
RUN = [line for line in RUNNABLE if not _NOT_RUN.search(line)]


@pytest.mark.long
@pytest.mark.parametrize("line", RUN)
def test_each_command_runs_as_it_is_on_the_fixtures(checkout: tuple[Path, str], line: str) -> None:
    run(*checkout, line)
