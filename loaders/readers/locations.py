"""Locations of a load, resolved to files: files, folders, glob patterns, datasets on the model hub, fetched sources."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kg.errors import SourceError, UpstreamError
from kg.settings import Settings
from kg.text import describe_unread, list_or, quoted
from loaders.file_formats import TABLES
from loaders.model import Snapshot
from loaders.readers.formats import surrogate_in
from loaders.readers.ignore_files import NAMES, IgnoreFiles

_SHOWN: Final = 3
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class File:
    """A file to read, with its hash. `named` means that the caller named it, so it must be readable."""

    path: Path
    snapshot: Snapshot
    named: bool
    rows: Sequence[int] | None = None
    """For an excerpt, the row numbers of its rows in the snapshot."""
    root: Path | None = None
    """The folder that the caller named, or the one around a file or the matches of a pattern."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A file at a location that cannot be read, and the reason. `source` is None if its name is not text."""

    name: str
    source: str | None
    reason: str
    path: Path
    place: str
    """Its path to be shown and stored: with escapes for bytes that are not UTF-8, without secrets."""
    root: Path
    """The folder in which it was found."""


@dataclass(frozen=True, slots=True)
class Located:
    """The files at some locations.

    `scopes` match each `Snapshot.source` at these locations, present or deleted: a path, a folder (ending in ``/``),
    or a pattern.
    """

    files: Sequence[File]
    scopes: Sequence[str | re.Pattern[str]]
    warnings: Sequence[str] = ()
    unread: Sequence[Unread] = ()
    """Files of folders and patterns that cannot be read, where the caller asked for the others."""
    other: Mapping[str, int] = field(default_factory=dict)
    """Number of the files of folders and patterns that have other formats, by the ends of their names."""

    def refuse(self, is_refused: Callable[[File | Unread], Unread | None]) -> Located:
        """Move the files that are refused for their paths to those that are not read. Nothing has their paths then."""
        checked = [(file, is_refused(file)) for file in self.files]
        unopened = (is_refused(unread) or unread for unread in self.unread)
        return replace(
            self,
            files=tuple(file for file, unread in checked if unread is None),
            unread=(*unopened, *(unread for _, unread in checked if unread is not None)),
        )

    def covers(self, source: str) -> bool:
        """Whether `source` is at these locations."""
        return any(
            scope.fullmatch(source) is not None
            if isinstance(scope, re.Pattern)
            else source == scope or (scope.endswith("/") and source.startswith(scope))
            for scope in self.scopes
        )


@dataclass(frozen=True, slots=True)
class Fetched:
    """Fetched files by their `Snapshot.source`, which all start with `scope`."""

    files: Mapping[str, Path]
    scope: str
    """The location of all files of this source, present or deleted. Ends in ``/``."""
    revision: str
    """The revision or the time of the fetch."""
    warnings: Sequence[str] = ()


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, which replaces `path` at the end if it exists.

    Raises SourceError if it cannot be written. Then `path` is unchanged.
    """
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        if partial.exists():
            partial.replace(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot write fetched data ({error.strerror})") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


Fetch = Callable[[str, Settings, Path], Fetched]
"""Fetches a location with these settings into this folder."""


@dataclass(slots=True)
class _Finder:
    settings: Settings
    formats: Sequence[str] = TABLES
    remote: Sequence[str] = ()
    """Prefixes of locations that are not files, for messages."""
    files: dict[str, File] = field(default_factory=dict)
    scopes: list[str | re.Pattern[str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unread: list[Unread] | None = None
    """Collects the files of folders and patterns that cannot be read; None: they end the search."""
    other: Counter[str] = field(default_factory=Counter)

    def add_found(self, path: Path, root: Path) -> None:
        """Add a file of a folder or pattern, or the reason why it cannot be read."""
        if self.unread is None:
            self.add(path, named=False, root=root)
            return
        is_text = surrogate_in(str(path)) is None
        source = path.as_posix() if is_text else None
        name = path.name if is_text else repr(os.fsencode(path.name))
        try:
            if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
                raise SourceError(f"{name}: It is a link out of the folder. Copy the file, or load its own folder.")
            if path.is_dir():
                raise SourceError(f"{name}: It is a link to a folder, which is not followed.")
            if not path.is_file():
                raise SourceError(f"{name}: It is not a file, or a link to none.")
            self.add(path, named=False, root=root)
        except SourceError as error:
            self.unread.append(Unread(name, source, str(error), path, to_place(path), root))

    def add(
        self,
        path: Path,
        *,
        named: bool,
        source: str | None = None,
        revision: str | None = None,
        root: Path | None = None,
    ) -> None:
        # A file at several locations (in a folder and by name) is read once.
        if (found := surrogate_in(str(path))) is not None:
            raise SourceError(f"{os.fsencode(path)!r}: the name of the file is not UTF-8 ({found}). Rename the file.")
        key = os.path.realpath(path)
        known = self.files.get(key)
        if known is None:
            snapshot = Snapshot(file_sha256(path), source or path.as_posix(), revision)
            self.files[key] = File(path, snapshot, named, root=root)
        elif named and not known.named:
            self.files[key] = File(known.path, known.snapshot, named=True, root=known.root)

    def local(self, location: str) -> None:
        # Unlike pathlib, os.path reports invalid or forbidden names as missing files instead of raising.
        path = Path(os.path.abspath(os.path.expanduser(location)))
        if os.path.isfile(path):
            if not _ends(path, self.formats):
                raise SourceError(f"{location}: only files that end in {list_or(self.formats)} can be read")
            self.scopes.append(path.as_posix())
            self.add(path, named=True, root=path.parent)
        elif os.path.isdir(path):
            self.scopes.append(path.as_posix().rstrip("/") + "/")
            if self.unread is None:
                found = list(_walk(path, self.formats, other=self.other))
            else:
                found, excluded = walk_folder(path, self.formats, other=self.other)
                if excluded:
                    shown = ", ".join(excluded[:_SHOWN]) + (
                        f" and {len(excluded) - _SHOWN} more" * (len(excluded) > _SHOWN)
                    )
                    self.warnings.append(f"{location}: Excluded by {' and '.join(NAMES)} files: {shown}")
            if not found:
                raise SourceError(f"{location}: the folder contains no file that ends in {list_or(self.formats)}")
            for each in found:
                self.add_found(each, path)
        elif glob.has_magic(location):
            matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
            matches = [match for match in matches if match.is_file()]
            found = [match for match in matches if _ends(match, self.formats)]
            _count_other(matches, self.formats, self.other)
            if not found:
                raise SourceError(f"{location}: the pattern matches no file that ends in {list_or(self.formats)}")
            self.scopes.append(_compile_glob(path.as_posix()))
            for each in found:
                self.add_found(each, _fixed_part(path))
        else:
            raise SourceError(
                f"{location}: no such file or folder. Other valid forms: {', '.join(('a pattern', *self.remote))}"
            )

    def hub(self, location: str) -> None:
        repo, _, revision = location.removeprefix("hub").removeprefix(":").partition("@")
        if not repo:
            repo, revision = self.settings.dataset_repo, revision or self.settings.dataset_revision or ""
        folder = _download(repo, revision or None, self.settings)
        commit = folder.name
        if not _COMMIT.fullmatch(revision):
            problem = f"revision {quoted(revision)} can change" if revision else "no revision is given"
            self.warnings.append(f"hub:{repo}: {problem}. To pin the current one: hub:{repo}@{commit}")
        scope = f"hub:{repo}/"
        self.scopes.append(scope)
        found = list(_walk(folder, self.formats))
        if not found:
            raise SourceError(f"hub:{repo}@{commit}: the dataset contains no file that ends in {list_or(self.formats)}")
        for each in found:
            self.add(each, named=False, source=scope + each.relative_to(folder).as_posix(), revision=commit)

    def fetched(self, fetched: Fetched) -> None:
        self.scopes.append(fetched.scope)
        self.warnings += fetched.warnings
        for source, path in fetched.files.items():
            self.add(path, named=True, source=source, revision=fetched.revision)


def find_files(
    locations: Sequence[str],
    settings: Settings,
    formats: Sequence[str] = TABLES,
    fetchers: Mapping[str, Fetch] | None = None,
    *,
    lenient: bool = False,
) -> Located:
    """Find the files at `locations`, each with its hash, in a fixed order.

    A location is a file, a folder (searched recursively), a glob pattern, ``hub`` (the dataset and revision of the
    settings) or ``hub:OWNER/NAME@REVISION``. `formats` are the extensions of readable files. `fetchers` maps schemes,
    such as ``sparql``, to functions that fetch their locations. If `lenient`, files of folders and patterns that cannot
    be read, or are links out of them, are `Located.unread`; else they end the search.

    Raises SourceError if there is nothing to read, UpstreamError if the hub or a fetched source does not respond.
    """
    if not locations or not all(locations):
        raise SourceError("no location. Name a file, a folder, a pattern or hub:OWNER/NAME@REVISION")
    # Of a dataset on the hub only tables are downloaded.
    tables = set(TABLES) <= set(formats)
    remote = [f"{scheme}:..." for scheme in fetchers or ()]
    finder = _Finder(settings, formats, ["hub:OWNER/NAME@REVISION", *remote] if tables else remote)
    finder.unread = [] if lenient else None
    for location in locations:
        if location == "hub" or location.startswith("hub:"):
            if not tables:
                raise SourceError(f"{location}: this source has no datasets on the hub. Name files or folders.")
            finder.hub(location)
        elif (fetch := (fetchers or {}).get(re.split("[:@]", location, maxsplit=1)[0])) is not None:
            finder.fetched(fetch(location, settings, settings.directory.fetched))
        else:
            finder.local(location)
    if finder.other:
        finder.warnings.append(describe_unread(finder.other, formats))
    return Located(
        tuple(finder.files.values()),
        tuple(finder.scopes),
        tuple(finder.warnings),
        tuple(finder.unread or ()),
        finder.other,
    )


def find_in_folder(root: Path, paths: Iterable[Path], settings: Settings, formats: Sequence[str]) -> Located:
    """Find the files at `paths` in the folder `root` as a lenient `find_files` of the whole folder does.

    Paths that this would leave out are left out: those of other formats, hidden or excluded ones, and missing ones.
    """
    finder = _Finder(settings, formats, unread=[])
    ignored = IgnoreFiles(root)
    for path in sorted(paths):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") for part in parts)
        linked = any(os.path.islink(root.joinpath(*parts[:depth])) for depth in range(1, len(parts)))
        if hidden or linked or not (_ends(path, formats) or path.is_dir()) or not os.path.lexists(path):
            continue
        if not any(
            ignored.is_excluded("/".join(parts[:depth]), is_folder=depth < len(parts))
            for depth in range(1, len(parts) + 1)
        ):
            finder.add_found(path, root)
    return Located(tuple(finder.files.values()), (), (), tuple(finder.unread or ()))


def walk_folder(
    root: Path, formats: Sequence[str], below: str = "", other: Counter[str] | None = None
) -> tuple[list[Path], list[str]]:
    """Walk a folder, or the folder `below` it, without the files that its ignore files exclude.

    `other` counts the files of other formats.

    Returns the paths with the extensions `formats` and the links to folders, in a fixed order, and the relative paths
    that are excluded. Raises SourceError if a folder cannot be read.
    """
    excluded: list[str] = []
    ignored = IgnoreFiles(root)

    def is_kept(path: str, is_folder: bool) -> bool:
        relative = os.path.relpath(path, root)
        if not ignored.is_excluded(relative, is_folder=is_folder):
            return True
        if is_folder or _ends(Path(path), formats):
            excluded.append(relative + "/" * is_folder)
        return False

    return list(_walk(root / below, formats, all_kinds=True, is_kept=is_kept, other=other)), excluded


def to_place(path: Path) -> str:
    """Convert a path to text, with escapes for bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")


def file_sha256(path: Path) -> str:
    """Compute the SHA-256 of a file, read as a stream. Raises SourceError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error


def _ends(path: Path, formats: Sequence[str]) -> bool:
    return path.name.lower().endswith(tuple(formats))


def _walk(
    folder: Path,
    formats: Sequence[str],
    *,
    all_kinds: bool = False,
    is_kept: Callable[[str, bool], bool] = lambda path, is_folder: True,
    other: Counter[str] | None = None,
) -> Iterator[Path]:
    """Yield the files with these endings. With `all_kinds`, also links to folders, and entries that are not files.

    `is_kept` is called with each path that is not hidden, and whether it is a folder. `other` counts files with other
    endings.
    """
    found: list[Path] = []

    def refuse(error: OSError) -> None:
        # If it were skipped, the files in it would look deleted.
        if isinstance(error, FileNotFoundError) and error.filename != os.fspath(folder):
            return  # it has just been deleted
        raise SourceError(f"{error.filename}: the folder cannot be read ({error.strerror})") from error

    for inner, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".") and is_kept(os.path.join(inner, name), True)]
        found += (
            Path(inner, name)
            for name in names
            if not name.startswith(".") and is_kept(os.path.join(inner, name), False)
        )
        if all_kinds:
            found += (Path(inner, name) for name in folders if os.path.islink(os.path.join(inner, name)))
    if other is not None:
        _count_other(found, formats, other)
    for path in sorted(found):
        if (_ends(path, formats) and (all_kinds or path.is_file())) or (all_kinds and path.is_dir()):
            yield path


def _count_other(paths: Sequence[Path], formats: Sequence[str], other: Counter[str]) -> None:
    """Count the files with other endings, except settings: ``town.toml`` next to ``town.html``."""
    names = {path.with_suffix("") for path in paths if _ends(path, formats)}
    other.update(
        path.suffix.lower()
        for path in paths
        if not _ends(path, formats)
        and not (path.suffix == ".toml" and path.with_suffix("") in names)
        and path.is_file()
    )


def _fixed_part(pattern: Path) -> Path:
    """Return the folder around all matches of a glob pattern."""
    folder = pattern.parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return folder


def _compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob pattern into a regular expression over whole paths, with the semantics of `glob.glob`."""
    parts = []
    for part in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]{0,200}\]|.", pattern, re.DOTALL):
        if part == "**/":
            parts.append(r"(?:.*/)?")
        elif part == "**":
            parts.append(".*")
        elif part in "*?":
            parts.append("[^/]" + ("*" if part == "*" else ""))
        elif len(part) > 1:
            parts.append("[" + part[1:-1].replace("\\", r"\\").replace("!", "^", part[1] == "!") + "]")
        else:
            parts.append(re.escape(part))
    return re.compile("".join(parts), re.DOTALL)


def _download(repo: str, revision: str | None, settings: Settings) -> Path:
    """Download the tables of a dataset into the cache of the hub client. The name of the folder is the commit."""
    import huggingface_hub
    from httpx import HTTPError
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    place = f"hub:{repo}" + (f"@{revision}" if revision else "")
    try:
        folder = huggingface_hub.snapshot_download(
            repo,
            repo_type="dataset",
            revision=revision,
            token=settings.hub_token.get_secret_value() if settings.hub_token else None,
            allow_patterns=[f"*{ending}" for ending in TABLES],
        )
    except HFValidationError as error:
        raise SourceError(f"{place}: not a dataset name, OWNER/NAME ({error})") from error
    except RevisionNotFoundError as error:
        raise SourceError(f"{place}: the dataset has no such revision") from error
    except RepositoryNotFoundError as error:
        raise SourceError(
            f"{place}: no such dataset, or it needs a token with read access (QUADCITE_HUB_TOKEN)"
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, HTTPError) as error:
        raise UpstreamError(f"{place}: unexpected response of the model hub ({error})") from error
    except OSError as error:
        raise SourceError(f"{place}: cannot write to the cache of the hub client ({error})") from error
    return Path(folder)
