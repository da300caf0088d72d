"""Which commits changed statements with which properties and subjects, so that computed values outlive all others.

A value that was computed from the statements with some properties stays valid until a commit adds or removes such a
statement. Statements with rdf:type count by their class (`kg.sparql.graph_exclusion.find_reads`). A value that
was computed from the statements about some nodes stays valid until a commit changes one about these.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from kg.store.commits import PreparedCommit
from kg.store.ownership import VERDICTS, is_user_graph
from kg.vocabulary import RDF

_MOST_NAMES: Final = 20_000
"""Maximum number of properties and classes that are kept, some 200 bytes each. Users can write any."""
_MOST_STATEMENTS: Final = 200_000
"""Maximum number of statements of a commit that are read, in 0.1 s. A larger one counts as changing all properties."""
_MOST_SUBJECTS: Final = 50_000
"""Maximum number of subjects that are kept, some 100 bytes each. Beyond them, all before count as changed."""
_TYPE: Final = str(RDF.type)


class Changes:
    """The last commit that changed each property. Commits before `since` are unknown, and count as changing all.

    One thread at a time calls `follow`; others may call `find_last` meanwhile.
    """

    def __init__(self, since: int) -> None:
        self._since = since
        """The last commit that counts as changing everything."""
        self._last = since
        self._sources: dict[str, int] = {}
        self._users: dict[str, int] = {}
        """The changes of graphs that trusted queries do not read."""
        self._subjects: dict[int, int] = {}
        """By the hash of the subject. A hash that two subjects share makes a value seem older than it is."""
        self._subjects_since = since

    def find_last(self, reads: AbstractSet[str] | None, *, users: bool = False) -> int:
        """Find the last generation that changed statements with these properties (None: any).

        Without `users`, statements in user graphs do not count, which trusted queries do not read.
        """
        if reads is None:
            return self._last
        found = [self._since]
        for names in (self._sources, self._users) if users else (self._sources,):
            found += [names.get(name, 0) for name in reads]
        return max(found)

    def find_last_of(self, subject: str) -> int:
        """Find the last generation that changed statements about the node with an IRI, in any graph."""
        return max(self._subjects_since, self._subjects.get(hash(f"<{subject}>"), 0))

    def follow(self, commit: PreparedCommit) -> None:
        """Add a commit, before its generation is the current one."""
        generation = commit.head.generation
        statements = [*commit.remove.items(), *commit.add.items()]
        statements += [(delta.graph, delta.removed) for delta in commit.deltas if delta.graph in commit.drop]
        is_large = sum(len(lines) for _, lines in statements) > _MOST_STATEMENTS
        # Trusted queries do not read an invalidated graph any more, although its statements are there.
        is_unread = commit.invalidated or commit.restored
        if is_large or is_unread or len(self._sources) + len(self._users) > _MOST_NAMES:
            self.forget(generation)
            return
        subjects: set[int] = set()
        for graph, lines in statements:
            is_hidden = is_user_graph(graph)
            for name in _read(lines, subjects):
                into = self._users if is_hidden and name not in VERDICTS else self._sources
                into[name] = generation
        if len(self._subjects) + len(subjects) > _MOST_SUBJECTS:
            self._subjects_since = generation
            self._subjects = {}
        else:
            self._subjects.update(dict.fromkeys(subjects, generation))
        self._last = generation

    def forget(self, generation: int) -> None:
        """Count everything as changed by a generation."""
        self._since = self._subjects_since = self._last = generation
        self._sources, self._users, self._subjects = {}, {}, {}


def _read(statements: Iterable[str], subjects: set[int]) -> set[str]:
    """Find the properties of statements, and the keys of their classes (`type_key`); add the hashes of subjects."""
    found: set[str] = set()
    for statement in statements:
        subject, name, value = statement.split(" ", 2)
        subjects.add(hash(subject))
        found.add(name)
        if name == _TYPE:
            found.add(f"{name} {value}")
    return {name.replace("<", "").replace(">", "") for name in found}
