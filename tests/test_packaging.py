"""What a stranger installs: the wheel carries all that `kg` needs, from whatever folder it is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
BUILT = "kg/server/static/built"


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    # Without what a coverage run puts into its children's environment: this one must know the wheel alone.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "COV_", "QUADCITE"))}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel from a source archive, as an index builds it, of a checkout in which a script of the pages was built."""
    checkout, folder = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("wheel")
    for name in ("kg", "loaders", "ontology", "shapes", "fixtures"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    (checkout / BUILT).mkdir(exist_ok=True)
    (checkout / BUILT / "page.js").write_text("built")
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=checkout)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("quadcite-*.tar.gz")
    shutil.unpack_archive(archive, folder, filter="data")
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=unpacked)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("quadcite-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `kg` of a fresh environment that holds the wheel, and sees its dependencies where the tests have them."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    done = run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel,
        cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    purelib = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).stdout.strip())
    # A line of a .pth file joins sys.path, and the .pth files in the folder that it names are not read:
    # the checkout, which the tests have installed as editable, stays out of sight.
    (purelib / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return home / "bin" / "kg"


def test_the_wheel_carries_code_data_licence_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.split("/")[0] for name in names}
    assert {"kg", "loaders"} == {top for top in tops if not top.endswith(".dist-info")}
    for folder in ("ontology", "shapes", "fixtures"):
        checkout = {
            f"kg/_data/{path.relative_to(ROOT).as_posix()}"
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert checkout
        assert checkout <= names
    assert any(name.endswith("/LICENSE") for name in names)
    assert not [name for name in names if "node_modules" in name or name.startswith("kg/server/assets/")]
    assert {f"{BUILT}/{path.name}" for path in (ROOT / BUILT).glob("*")} | {f"{BUILT}/page.js"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".env"))]


def test_the_installed_code_is_the_wheels_own(installed: Path, tmp_path: Path) -> None:
    where = run(installed.parent / "python", "-c", "import kg; print(kg.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(installed.parent.parent)


@pytest.mark.exhaustive
def test_an_installed_wheel_validates_its_own_ontology_shapes_and_fixtures_from_any_folder(
    installed: Path, tmp_path: Path
) -> None:
    done = run(installed, "validate", "--self", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(ROOT) not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_installed_wheel_loads_its_fixtures_and_answers_from_any_folder(installed: Path, tmp_path: Path) -> None:
    data = run(
        installed.parent / "python", "-c", "from kg.bundle import folder; print(folder('fixtures'))", cwd=tmp_path
    )
    fixtures = Path(data.stdout.strip())
    assert fixtures.is_relative_to(installed.parent.parent)
    loaded = run(installed, "load", "climate", fixtures / "climate", cwd=tmp_path)
    assert loaded.returncode == 0, loaded.stdout + loaded.stderr
    status = run(installed, "status", cwd=tmp_path)
    assert status.returncode == 0, status.stderr
    assert "quads" in status.stdout
    assert (tmp_path / "kg-data" / "format.json").is_file()


def test_actions_are_pinned_by_commit() -> None:
    files = [*ROOT.glob(".github/**/*.yml"), ROOT / "kg" / "docs" / "validation.md"]
    used = [line.strip() for file in files for line in file.read_text("utf-8").splitlines() if "uses:" in line]
    foreign = [line for line in used if "uses: ./" not in line and "OWNER/quadcite" not in line]
    assert len(foreign) >= 6
    assert [line for line in foreign if not re.search(r"@[0-9a-f]{40} # v\d", line)] == []
