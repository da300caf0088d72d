"""The files of policies: the default ones, and those of a folder, which are read again when they change."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import cedarpy

from kg.errors import InvalidInputError

log = logging.getLogger(__name__)

DEFAULT: Final = Path(__file__).parent / "cedar" / "default.cedar"
CHECKED_S: Final = 1.0
"""Seconds between two looks at the folder."""
_POSITION: Final = re.compile(r"\bpolicy(\d+)\b")


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Policies that were parsed and validated, with their ids in place of Cedar's, which are positions."""

    handle: cedarpy.PolicySet = field(repr=False)
    ids: Mapping[str, str]
    """The id of each policy (annotation ``@id``, else file and number) by Cedar's."""
    advice: Mapping[str, str]
    """The text for a caller who is denied by a policy (annotation ``@advice``), by id."""
    without_context: cedarpy.PolicySet = field(repr=False)
    """The policies that hold for all arguments and times: each permit without its conditions on these, and the forbids
    that have none."""
    document: Mapping[str, Any] = field(repr=False)
    """The policies in the JSON format of Cedar."""
    version: str
    is_default: bool
    """Whether there are only the shipped policies."""

    def select(self, action: str) -> cedarpy.PolicySet:
        """Select the policies that may be about an action without groups."""
        kept = {
            name: policy
            for name, policy in self.document["staticPolicies"].items()
            if policy["action"]["op"] == "All" or _mentions(policy["action"], "id", action)
        }
        return cedarpy.PolicySet.from_json_str(json.dumps({**self.document, "staticPolicies": kept}))

    def reword(self, message: str) -> str:
        """Name policies in a message of Cedar by their ids."""
        return _POSITION.sub(lambda found: self.ids.get(found[0], found[0]), message)


class PolicyFiles:
    """The policy set of a folder, with the default policies. Thread-safe.

    The folder is looked at once in `CHECKED_S` at most. A set with an invalid file does not count: the earlier one
    stays in force, and `problem` describes it. Raises InvalidInputError if the first one is invalid.
    """

    def __init__(self, folder: Path | None, schema: cedarpy.Schema) -> None:
        self.problem: str | None = None
        self.on_change: Callable[[str, str | None], object] = lambda version, problem: None
        """Called after each change of the files, with the version in force and the problem."""
        self._folder: Final = folder
        self._schema: Final = schema
        self._lock: Final = threading.Lock()
        self._signature: object = None if folder is None else _sign(folder)
        self._looked = time.monotonic()
        self._current = read_policies(folder, schema)

    def get(self) -> PolicySet:
        """Get the policy set in force."""
        if self._folder is None or time.monotonic() - self._looked < CHECKED_S:
            return self._current
        if self._lock.acquire(blocking=False):  # others go on with the set in force
            try:
                self._look(self._folder)
            finally:
                self._lock.release()
        return self._current

    def _look(self, folder: Path) -> None:
        self._looked = time.monotonic()
        try:
            # Before the files are read: a later change is then found by the next look.
            signature: object = _sign(folder)
            if signature == self._signature:
                return
            self._signature = signature
            self._current = read_policies(folder, self._schema)
        except InvalidInputError as error:
            self._signature = None if _is_unreadable(error) else self._signature
            if str(error) != self.problem:
                self.problem = str(error)
                log.error("The policies have changed and are invalid. Those of before stay in force. %s", error)
                self.on_change(self._current.version, self.problem)
            return
        self.problem = None
        self.on_change(self._current.version, None)
        log.info(
            "The policies were read again: version %s, %d policies.", self._current.version, len(self._current.ids)
        )


def read_policies(folder: Path | None, schema: cedarpy.Schema) -> PolicySet:
    """Read, parse and validate the files of a folder, and the default policies.

    Raises InvalidInputError that names the file and the problem of each invalid policy.
    """
    files = _read_texts(folder)
    ids: dict[str, str] = {}
    advice: dict[str, str] = {}
    problems: list[str] = []
    for name, text in files:
        found = _parse(name, text, schema, problems)
        for id, hint in found:
            if id in ids.values():
                problems.append(f"{name}: the id {id!r} is used twice. Give each policy an @id of its own.")
            ids[f"policy{len(ids)}"] = id
            if hint:
                advice[id] = hint
    if problems:
        raise InvalidInputError("Invalid policies: " + "; ".join(problems))
    whole = "\n".join(text for _, text in files)
    handle = cedarpy.PolicySet.from_str(whole)
    version = hashlib.sha256(whole.encode()).hexdigest()[:12]
    document = json.loads(cedarpy.policies_to_json_str(whole))
    without_context = cedarpy.PolicySet.from_json_str(json.dumps(_drop_context(document)))
    is_default = whole == DEFAULT.read_text(encoding="utf-8")
    return PolicySet(handle, ids, advice, without_context, document, version, is_default)


def _parse(name: str, text: str, schema: cedarpy.Schema, problems: list[str]) -> Sequence[tuple[str, str | None]]:
    """Parse the policies of one file: id and advice of each, in order. Adds messages to `problems`."""
    try:
        parsed = cedarpy.PolicySet.from_str(text).to_pst()
    except ValueError as error:
        problems.append(f"{name}: {error}")
        return ()
    if parsed.templates:
        problems.append(f"{name}: policies with ?principal or ?resource are not supported. Write one policy for each.")
        return ()
    ordered = sorted(parsed.static_policies.items(), key=lambda item: int(item[0].removeprefix("policy")))
    found = [
        (policy.annotations.get("id") or f"{name}:{number}", policy.annotations.get("advice"))
        for number, (_, policy) in enumerate(ordered, 1)
    ]
    ids = {position: id for (position, _), (id, _) in zip(ordered, found, strict=True)}
    for invalid in cedarpy.validate_policies(text, schema).errors:
        message = _POSITION.sub(lambda match: ids.get(match[0], match[0]), invalid.error)
        problems.append(f"{name}: {message}")
    return found


def _drop_context(document: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the conditions of permits that mention the context, and the forbids with such conditions."""
    kept = {}
    for name, policy in document["staticPolicies"].items():
        conditions = [each for each in policy["conditions"] if not _mentions(each["body"], "Var", "context")]
        if policy["effect"] == "permit" or len(conditions) == len(policy["conditions"]):
            kept[name] = {**policy, "conditions": conditions}
    return {**document, "staticPolicies": kept}


def _mentions(node: Any, key: str, value: str) -> bool:
    """Return whether a part of a JSON document has a member with this key and value."""
    if isinstance(node, dict):
        return node.get(key) == value or any(_mentions(each, key, value) for each in node.values())
    return isinstance(node, list) and any(_mentions(each, key, value) for each in node)


def _read_texts(folder: Path | None) -> list[tuple[str, str]]:
    """Read the default policies, and the files of the folder in the order of their names."""
    paths = {DEFAULT.name: DEFAULT}
    try:
        if folder is not None:
            paths |= {path.name: path for path in sorted(folder.iterdir()) if _is_policy_file(path)}
        return [(name, path.read_text(encoding="utf-8")) for name, path in paths.items()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"Cannot read the policies in {folder}: {error}. {_FIX}") from error


_FIX: Final = "QUADCITE_POLICIES names a folder of .cedar files in UTF-8."


def _is_unreadable(error: InvalidInputError) -> bool:
    return error.__cause__ is not None


def _is_policy_file(path: Path) -> bool:
    return path.suffix == ".cedar" and not path.name.startswith(".") and path.is_file()


def _sign(folder: Path) -> object:
    """Describe the state of the files of a folder, which differs after each change."""
    try:
        found = [(path.name, path.stat()) for path in sorted(folder.iterdir()) if _is_policy_file(path)]
    except OSError as error:
        raise InvalidInputError(f"Cannot read the policies in {folder}: {error}. {_FIX}") from error
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in found)
