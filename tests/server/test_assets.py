"""The sources of the scripts of the web pages: all that they contain is pinned, and no host is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "kg" / "server" / "assets"


def test_the_lock_file_pins_every_package_without_naming_a_registry() -> None:
    packages = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    own = packages.pop("")
    assert {**own["dependencies"], **own["devDependencies"]}
    for name, entry in packages.items():
        assert "resolved" not in entry, name
        assert entry["integrity"].startswith("sha512-"), name
    for version in {**own["dependencies"], **own["devDependencies"]}.values():
        assert re.fullmatch(r"[0-9.]+", version)


def test_our_scripts_make_no_markup_from_text_and_name_no_host() -> None:
    sources = list((FOLDER / "src").rglob("*.js"))
    assert sources
    for path in sources:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), path.name
        assert not re.search(r"https?://", text), path.name
