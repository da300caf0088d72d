"""Whether an identifier of a record is that of the person whom the record names.

Records now and then have the identifier of another person: of the one who spoke before, or a mistyped one. So an
identifier counts only where the surname agrees with a name that a register of members has for it, or without a register
with the names under which the files and the store mostly have it. A name that is mostly another identifier's is not one
of this one. Where nothing decides between two names, the identifier counts for neither.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from kg.text import join_first
from loaders.hansard.offices import identifier_of, is_nobody, is_office, strip_office
from loaders.hansard.person_names import (
    Agreement,
    compare,
    differ_in_given_names,
    has_given_names,
    have_same_surname,
    read_full,
)
from loaders.hansard.sitting_model import Sitting, Talker
from loaders.readers.cells import quote

_LISTED: Final = 12


class Identifiers:
    """The names under which each identifier of Australia's parliament is known, with the number of records."""

    def __init__(self) -> None:
        self.is_complete = False
        """Whether the names in files that are read are among them already, as where the store has these files."""
        self._registered: dict[str, set[str]] = defaultdict(set)
        self._recorded: dict[str, Counter[str]] = defaultdict(Counter)
        self._groups: dict[str, Sequence[frozenset[str]]] = {}

    def add_registered(self, name_id: str, name: str) -> None:
        """Add a name that a register has for an identifier."""
        self._registered[name_id].add(name)
        self._groups.clear()

    def add_recorded(self, name_id: str, form: str, count: int) -> None:
        """Add a recorded form, with the number of stored records that have it."""
        if name := _personal(form):
            self._recorded[name_id][name] += count
            self._groups.clear()

    def add(self, talkers: Iterable[Talker]) -> None:
        """Add the names in a file."""
        if self.is_complete:
            return
        for talker in talkers:
            if (name_id := identifier_of(talker)) is not None:
                for name in _names_of(talker)[:1]:
                    self._recorded[name_id][name] += 1
        self._groups.clear()

    def is_of(self, talker: Talker) -> bool:
        """Whether the identifier of a talker is that of the person whom the record names."""
        name_id, names = identifier_of(talker), _names_of(talker)
        return name_id is None or all(self._has(name_id, name) for name in names)

    def _has(self, name_id: str, name: str) -> bool:
        groups = self._groups.get(name_id)
        if groups is None:
            groups = self._groups[name_id] = self._group(name_id)
        if not groups:
            return True
        own = groups[0]
        if not any(have_same_surname(name, each) for each in own):
            return False
        if self._is_registered_elsewhere(name_id, name, own):
            return False
        # Other given names are often a nickname, but not where they are mostly those of another identifier.
        if not all(differ_in_given_names(name, each) for each in own):
            return True
        elsewhere = self._count_elsewhere(name_id, {name}, with_given_names=True)
        return elsewhere == 0 or elsewhere < self._recorded[name_id][name]

    def _is_registered_elsewhere(self, name_id: str, name: str, own: Collection[str]) -> bool:
        """Whether registers have these given names for other identifiers only. `own` are the names of this one."""
        forms = [form for form in read_full(name) if form.given] if has_given_names(name) else []
        if not forms or any(compare(form, own) is not Agreement.NONE for form in forms):
            return False
        others = [names for other, names in self._registered.items() if other != name_id]
        return any(compare(form, names) is not Agreement.NONE for form in forms for names in others)

    def _group(self, name_id: str) -> Sequence[frozenset[str]]:
        """Group the names of an identifier by person: those of its person first, or an empty group if none is."""
        if registered := self._registered.get(name_id):
            return [frozenset(registered)]
        recorded = self._recorded.get(name_id, Counter[str]())
        groups: list[set[str]] = []
        # Full names first: a surname alone joins the one that it agrees with.
        for name in sorted(recorded, key=lambda each: ("," not in each, -recorded[each], each)):
            for group in groups:
                if any(have_same_surname(name, each) and not differ_in_given_names(name, each) for each in group):
                    group.add(name)
                    break
            else:
                groups.append({name})
        if len(groups) < 2:
            return [frozenset(each) for each in groups]
        ranked = []
        for group in groups:
            here, elsewhere = sum(recorded[name] for name in group), self._count_elsewhere(name_id, group)
            ranked.append(((elsewhere > here, -here, elsewhere > 0), sorted(group)))
        ranked.sort()
        if ranked[0][0] == ranked[1][0] and not have_same_surname(ranked[0][1][0], ranked[1][1][0]):
            return [frozenset()]
        return [frozenset(group) for _, group in ranked]

    def _count_elsewhere(self, name_id: str, names: Collection[str], *, with_given_names: bool = False) -> int:
        """Count the records of the other identifier that has most of them under these names.

        `with_given_names`: only under names whose given names agree too, and not under a surname alone.
        """

        def is_one(name: str) -> bool:
            return any(
                have_same_surname(name, each)
                and not differ_in_given_names(name, each)
                and (not with_given_names or has_given_names(name))
                for each in names
            )

        return max(
            (
                sum(count for name, count in recorded.items() if is_one(name))
                for other, recorded in self._recorded.items()
                # Where most records name somebody else, these have a wrong identifier too.
                if other != name_id
                and any(have_same_surname(max(recorded, key=recorded.__getitem__), each) for each in names)
            ),
            default=0,
        )


def list_talkers(sitting: Sitting) -> list[Talker]:
    """List the talkers and voters with an identifier of a sitting, each as often as it is there."""
    found = [each.talker for speech in sitting.speeches for each in speech.utterances if each.talker is not None]
    found += [speech.talker for speech in sitting.speeches if not speech.utterances]
    found += [each for debate in sitting.debates for each in debate.presenters]
    found += [Talker(vote.name, name_id=vote.name_id) for each in sitting.divisions for vote in each.votes]
    return [talker for talker in found if identifier_of(talker) is not None]


def describe_doubtful(doubtful: Mapping[tuple[str, str], int]) -> str:
    """Describe the records, by identifier and recorded name, whose identifier is not that of the name."""
    listed = [f"{name_id} {quote(name)} ({count})" for (name_id, name), count in sorted(doubtful.items())]
    count = sum(doubtful.values())
    return (
        f"{count} record{'s have' if count > 1 else ' has'} an identifier that is not known under the recorded name: "
        f"{join_first(listed, _LISTED)}. The recorded name is kept, and no person is linked. If a person has both "
        "names, load a register that lists them (kg load members FILE), then this file again."
    )


def _names_of(talker: Talker) -> list[str]:
    """List the names of a person that a record has, the fullest first."""
    forms = [form for form in (talker.full_name, talker.name) if form and form != talker.name_id]
    return [name for form in forms if (name := _personal(form))]


def _personal(form: str) -> str | None:
    """Return a recorded form as a name of a person, without an office; None for that of an office or a crowd."""
    if is_office(form) or is_nobody(form):
        return None
    return strip_office(form) or None
