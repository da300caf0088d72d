"""Files on the server's machine that tools may read: those in the folders of a setting, with all links followed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path, PurePosixPath
from typing import Final

from kg.errors import ForbiddenError, InvalidInputError, NotFoundError
from kg.text import quoted

SETTING: Final = "QUADCITE_INGEST_FOLDERS"
VISITED: Final = 200_000
"""Maximum number of entries of folders that one call looks at."""


def resolve_folders(folders: Sequence[Path], command: str) -> list[Path]:
    """Resolve the folders that the setting allows; `command` is one that needs no setting.

    Raises ForbiddenError if there are none.
    """
    if not folders:
        raise ForbiddenError(
            f"This server does not load files: its setting {SETTING} is empty. Set it to a folder, or load with "
            f"`{command}`."
        )
    return [resolve(folder.expanduser()) for folder in folders]


def find_allowed(roots: Sequence[Path], argument: str, text: str) -> tuple[Path, Path]:
    """Find a file or folder: the one of `roots` that it is in, and its path, with all links followed.

    A relative path is searched in each root. Raises ForbiddenError for a path elsewhere, whether or not it exists,
    NotFoundError for one that does not exist, and InvalidInputError for one that cannot be a path.
    """
    if "\0" in text:
        raise InvalidInputError(f"{argument} contains a NUL character. A path cannot have one.")
    given = Path(text)
    candidates = [resolve(given)] if given.is_absolute() else [resolve(root / given) for root in roots]
    inside = [(root, path) for path in candidates for root in roots if path.is_relative_to(root)]
    if not inside:
        raise ForbiddenError(
            f"{argument}: {quoted(text)} is not in a folder that {SETTING} allows, after links are followed."
        )
    found = next((pair for pair in inside if os.path.exists(pair[1])), None)  # False for an invalid name too
    if found is None:
        raise NotFoundError(f"{argument}: no file {quoted(text)} in the folders that {SETTING} allows.")
    return found


def resolve(path: Path) -> Path:
    """Resolve a path. Raises InvalidInputError for circular links, and for a name that is too long."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise InvalidInputError(f"{quoted(str(path))} cannot be resolved to a file: {error}.") from None


@dataclass(slots=True)
class FoundFiles:
    """Files by root, each with the reason if it cannot be read."""

    files: dict[Path, dict[Path, None]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)
    """Files in folders that have other formats, by the ends of their names."""
    problems: list[str] = field(default_factory=list)

    def count(self) -> int:
        """Count the files."""
        return sum(map(len, self.files.values()))


def list_allowed(roots: Sequence[Path], argument: str, texts: Sequence[str], endings: Collection[str]) -> FoundFiles:
    """List the files at some paths: files, folders with all that is below them, and glob patterns.

    Links to folders are not followed, and hidden files and folders are left out. A path that is not allowed, does not
    exist or matches nothing is a problem. Raises ForbiddenError if no path is allowed.
    """
    found = FoundFiles()
    refused: list[ForbiddenError] = []
    budget = [VISITED]
    for text in texts:
        before = found.count()
        try:
            if has_magic(text):
                _add_matches(found, roots, argument, text, endings, budget)
            else:
                root, path = find_allowed(roots, argument, text)
                if path.is_dir():
                    _add_all(found, root, path, ("**", "*"), endings, budget)
                elif not path.name.lower().endswith(tuple(endings)):
                    found.problems.append(f"{_shown(root, path)}: Formats: {', '.join(endings)}.")
                    continue
                else:
                    found.files.setdefault(root, {})[path] = None
            if found.count() == before:
                found.problems.append(f"{quoted(text)}: No new file there ends in {', '.join(endings)}.")
        except ForbiddenError as error:
            refused.append(error)
            found.problems.append(str(error))
        except (NotFoundError, InvalidInputError) as error:
            found.problems.append(str(error))
    if len(refused) == len(texts):
        raise refused[0]
    return found


def _add_matches(
    found: FoundFiles, roots: Sequence[Path], argument: str, text: str, endings: Collection[str], budget: list[int]
) -> None:
    parts = PurePosixPath(text).parts
    if ".." in parts:
        raise ForbiddenError(f"{argument}: {quoted(text)} has '..' in a pattern, which is not allowed.")
    number = next(place for place, part in enumerate(parts) if has_magic(part))
    fixed, pattern = Path(*parts[:number]) if number else Path(), parts[number:]
    root, folder = find_allowed(roots, argument, str(fixed))
    if not folder.is_dir():
        raise NotFoundError(f"{argument}: {quoted(str(fixed))} is not a folder.")
    _add_all(found, root, folder, pattern, endings, budget)


def _add_all(
    found: FoundFiles, root: Path, folder: Path, pattern: Sequence[str], endings: Collection[str], budget: list[int]
) -> None:
    """Add the files below `folder` that match `pattern`, except links out of `root`."""
    for path in _walk(folder, budget):
        if not matches(path.relative_to(folder).parts, pattern):
            continue
        if not path.name.lower().endswith(tuple(endings)):
            found.unread[path.suffix.lower()] += 1
            continue
        try:
            is_inside = resolve(path).is_relative_to(root)
        except InvalidInputError:
            found.problems.append(f"{_shown(root, path)}: It is a link that leads to no file.")
            continue
        if not is_inside:
            found.problems.append(f"{_shown(root, path)}: It is a link out of the folder.")
        else:
            found.files.setdefault(root, {})[path] = None


def _walk(folder: Path, budget: list[int]) -> Iterator[Path]:
    for inner, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        budget[0] -= len(folders) + len(names)
        if budget[0] < 0:
            raise InvalidInputError(f"There are more than {VISITED:,} files and folders. Name smaller folders.")
        yield from (Path(inner, name) for name in sorted(names) if not name.startswith("."))


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path match those of a glob pattern; ``**`` matches any number of parts."""
    reached = _skip({0}, pattern)
    for part in parts:
        reached = _skip(
            {
                place if pattern[place] == "**" else place + 1
                for place in reached
                if place < len(pattern) and (pattern[place] == "**" or fnmatchcase(part, pattern[place]))
            },
            pattern,
        )
    return len(pattern) in reached


def _skip(places: set[int], pattern: Sequence[str]) -> set[int]:
    """Add the places after each ``**``, which may match nothing."""
    for place in range(len(pattern)):
        if place in places and pattern[place] == "**":
            places.add(place + 1)
    return places


def _shown(root: Path, path: Path) -> str:
    return f"{root.name}/{path.relative_to(root).as_posix()}"[:300]
