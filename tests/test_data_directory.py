"""The data directory is one object: no other module spells a path in it."""

from __future__ import annotations

import re

from kg.data_directory import ENTRIES
from tests.test_imports import MODULES


def test_no_other_module_spells_a_path() -> None:
    names = {part.rstrip("*") for entry in ENTRIES for part in entry.name.split("/")} - {""}
    # Names that are no words mean the file wherever they are.
    anywhere = "|".join(re.escape(name) for name in names if not name.isidentifier())
    spelled = re.compile(rf'(?:/ |glob\()f?"(?:{"|".join(map(re.escape, names))})(?:/|")|"(?:{anywhere})')
    others = [path for path in MODULES if path.stem != "data_directory"]
    found = {(path.stem, match[0]) for path in others for match in spelled.finditer(path.read_text())}
    # Equal names in other folders.
    folder_of_backups = {("backup_folder", f'/ "{name}"') for name in ("files", "lock", "points")}
    assert found == {("settings", '/ "models"'), ("index_process", '/ "lock"')} | folder_of_backups
