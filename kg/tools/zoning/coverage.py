"""Finds the sentences of districts' sections that extraction did not understand: the gaps of an answer.

A sentence with words of permission is understood if a permission or definition rests on it, or if it introduces a list
of permissions. A code in a matrix is understood if a permission rests on it. A measure is understood if a standard or
definition rests on it. The sections of a district are those with its name in their heading or in one above it, where
items of a list of uses count too, and all sections of its rules, there without the sentences that name other districts
only. In other sections, the sentences that name the district count.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.choices import shorten
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.token_budget import Lean, clipped
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import find_sentence_ends
from kg.tools.zoning.municipalities import Place, get_section_key
from kg.tools.zoning.term_lookup import Named
from kg.vocabulary import KG
from kg.words import singular
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree

SHOWN: Final = 5
"""Maximum number of sentences in an answer."""
_CHARACTERS: Final = 240
"""Maximum characters of a sentence in an answer."""
_FIGURES: Final = {"O": "0", "I": "1"}
_FEW: Final = 5
"""Maximum number of districts whose code is looked for in all sections."""

TEXTS: Final = """
SELECT ?section ?text WHERE { VALUES ?section { $sections } ?section schema:text ?text }"""

SPANS: Final = """
SELECT ?section ?kind ?start ?end WHERE {
  VALUES ?section { $sections } VALUES ?kind { kg:UsePermission kg:DimensionalStandard kg:Definition }
  ?finding kg:definedIn ?section ; a ?kind ; kg:evidence ?span . ?span kg:start ?start ; kg:end ?end
}"""

SECTIONS: Final = """
SELECT DISTINCT ?district ?section WHERE {
  VALUES ?district { $districts } ?rule kg:district ?district ; kg:definedIn ?section
}"""

NAMED_IN: Final = """
SELECT ?section WHERE {
  ?section kg:jurisdiction $municipality ; a kg:CodeSection ; schema:text ?text FILTER(CONTAINS(?text, $code))
}"""

RuleKind = Literal["permission", "standard"]

# These signs are not the patterns that extraction reads by: what extraction misses must still be noticed here, so they
# are simpler and find more.
_PERMISSION: Final = re.compile(
    r"\b(?:permitted|allowed|prohibited|forbidden|unlawful|by right|(?:conditional|special) (?:uses?|exceptions?)|"
    r"special permits?|shall not be used|"
    r"no [^.;:\n]{1,60} (?:shall|may|must) be (?:\w+ (?:or|and) )?used (?:as|for)|not be (?:used|established))\b",
    re.IGNORECASE,
)
_NUMBER: Final = r"(?:\d[\d,.]*(?:[ -]?\d+/\d+|[½¼¾⅓⅔])?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|\w+ty)"
_MEASURE: Final = re.compile(
    rf"(?<![\w.]){_NUMBER}(?:[ -]*\(\s*[^()]{{1,12}}\))?[ -]*"
    r"(?:feet|foot|ft\b|['’′](?!s)|acres?\b|ac\b|sq(?:uare|\.)|sf\b|percent|%|stor(?:y|ies|eys?)\b|met(?:er|re)s?\b|"
    r"inches\b|(?:parking )?spaces?\b|(?:dwelling )?units?\b)",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r":\s*$|\bfollowing\b", re.IGNORECASE)
"""A sentence that introduces a list."""
_REPEATED: Final = re.compile(r"[ \n]?\([^()]{1,40}\)")
"""The same measure in brackets: ``thirty percent (30%)``."""
_ITEM_WORDS: Final = 10
"""Maximum words of an item of a list of uses."""
_LISTED: Final = 3
"""Least number of permissions in a section with a list of uses."""
_NO_ITEM: Final = re.compile(
    r":$|\b(?:see|section|table|figure|chapter|shall|must|may|is|are|be|was|were|has|have|does|will|can|intended|purpose)\b|§|"
    r"^\W*(?:uses|standards|districts?)\W*$",
    re.IGNORECASE,
)
_DIVIDER: Final = " | "
"""Divider of the cells of a table in the text of a section."""
_CODE: Final = re.compile(
    r"(?:[A-Z]{1,5}(?:[/-][A-Z]{1,4}){0,2}\d?|[a-z]{1,2}|[✓✔•●■○◯◐□☐*]{1,2})(?: ?[(\[]?[\d,*†‡]{1,5}[)\]]?)?"
)
"""A code in a cell of a matrix: ``SPR``, ``C-2``, ``P (3)``."""
_LABEL: Final = re.compile(r"(?:\(\w{1,4}\)\s*){1,3}")
"""Label of an item: ``(1)``."""
_WORD: Final = re.compile(r"[^\W\d_]{3}")
_INNER_END: Final = re.compile(r"[.!?;:][)\]\"”']*\s+\S")
"""A sign that a line may have several sentences."""
_HEADING_WORDS: Final = 8
"""Maximum words of a sentence that may be the heading of a list."""
_SIGNS: Final[Mapping[RuleKind, re.Pattern[str]]] = {"permission": _PERMISSION, "standard": _MEASURE}
_COVERING: Final[Mapping[RuleKind, frozenset[str]]] = {
    "permission": frozenset((KG.UsePermission.value, KG.Definition.value)),
    "standard": frozenset((KG.DimensionalStandard.value, KG.Definition.value)),
}


class NotUnderstood(Lean):
    """A sentence of a section that no rule was read from, though it has words of a rule."""

    section_ref: str
    words: str


class Coverage(NamedTuple):
    """The gaps of an answer about some districts."""

    sentences: list[NotUnderstood]
    """The first of them."""
    incomplete: str | None = None
    """The gaps in words. None if all sentences with words of a rule were understood."""

    @property
    def is_complete(self) -> bool:
        """Whether all sentences with words of a rule were understood."""
        return self.incomplete is None


def check_coverage(
    reader: Reader,
    kind: RuleKind,
    place: Place,
    districts: Mapping[str, Named],
    known: Mapping[str, Named],
    use: str | None = None,
) -> Coverage:
    """Find the sentences that were not understood in the sections of `districts`, by IRI, of those `known`.

    Sentences with a word of `use` come first. A code without text is not checked.
    """
    try:
        tree = code_tree.cached_tree(reader.kg, place.iri)
    except NotFoundError:  # only tables of the municipality are loaded
        return Coverage([])
    if not any(section.text_sha256 for section in tree.sections.values()):
        return Coverage([])
    own, others = _find_sections(reader, tree, districts)
    sections = {section for several in (*own.values(), *others.values()) for section in several}
    codes = {each.code for each in districts.values()}
    codes |= {alike for code in codes for alike in _find_alike(code)} - {each.code for each in known.values()}
    sections |= _find_naming(reader, place, codes) if len(districts) <= _FEW else set()
    unread = reader.kept_by_iri(
        f"not understood: {kind}", sections, lambda missing: _load_unread(reader, kind, missing)
    )
    headed = {section for several in own.values() for section in several}
    ruled = {section for several in others.values() for section in several}
    wanted, any_code = _compile_codes(codes), _compile_codes(each.code for each in known.values())
    found = [
        NotUnderstood(section_ref=get_section_key(section), words=clipped(words, _CHARACTERS))
        for section in sorted(tree.order, key=lambda iri: iri not in headed)
        for words, is_item in unread.get(section, ())
        if section in headed
        or (not is_item and (wanted.search(words) or (section in ruled and not any_code.search(words))))
    ]
    if use is not None:
        asked = set(_to_words(use))
        found.sort(key=lambda each: asked.isdisjoint(_to_words(each.words)))
    notes = []
    if lost := [each.code for iri, each in districts.items() if not own[iri] and not others[iri]]:
        notes.append(f"No section of {shorten(lost)} was found.")
    if found:
        refs = shorten(list(dict.fromkeys(each.section_ref for each in found)))
        signs = "words of permission, or items of lists of uses," if kind == "permission" else "measures"
        several = f"{len(found)} sentences with {signs} were" if len(found) > 1 else f"a sentence with {signs} was"
        notes.append(
            f"{several[0].upper()}{several[1:]} not understood: see not_understood. Read {refs} with kg_query_section."
        )
    return Coverage(found[:SHOWN], " ".join(notes) or None)


def _to_words(text: str) -> list[str]:
    return [singular(word) for word in fold(text).split() if len(word) > 2]


def _compile_codes(codes: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern of codes. Of codes with the same beginning, it finds the longest."""
    longest = sorted(codes, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest)) or '(?!)'})(?![\w-])")


def _find_alike(code: str) -> Iterator[str]:
    """Yield the codes that differ by one figure that looks like the letter: ``R-0`` may be a misprint of ``R-O``."""
    for place, letter in enumerate(code):
        if (figure := _FIGURES.get(letter)) is not None:
            yield code[:place] + figure + code[place + 1 :]


def _find_sections(
    reader: Reader, tree: CodeTree, districts: Mapping[str, Named]
) -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
    """Find the sections under a heading that names each district, and the other sections of its rules."""
    own: dict[str, set[str]] = {iri: set() for iri in districts}
    by_code = {each.code: iri for iri, each in districts.items()}
    pattern = _compile_codes(each.code for each in districts.values())
    shared = Counter(fold(each.name) for each in districts.values())
    names = {
        name: iri
        for iri, each in districts.items()
        if each.name != each.code
        and shared[name := fold(each.name)] == 1
        and name.replace("district", "").count(" ") > 1
    }
    for iri, section in tree.sections.items():
        if not section.title:
            continue
        found = {by_code[match[0]] for match in pattern.finditer(section.title)}
        found = {each for each in found if len(districts[each].code) > 1 or _is_of_district(section.title)}
        plain = fold(section.title)
        found |= {district for name, district in names.items() if f" {name} " in f" {plain} "} if not found else set()
        for district in found:
            own[district] |= {iri, *_below(tree, iri)}
    others: dict[str, set[str]] = {iri: set() for iri in districts}
    nodes = [NamedNode(iri) for iri in districts]
    for district, section_iri in reader.kept("sections of rules", bind(SECTIONS, districts=nodes), _to_pairs):
        if section_iri not in own[district]:
            others[district].add(section_iri)
    return own, others


def _find_naming(reader: Reader, place: Place, codes: Iterable[str]) -> set[str]:
    """Find the sections whose text has one of these codes. Codes of one letter are too common."""
    found: set[str] = set()
    for code in sorted(codes):
        if len(code) > 1:
            query = bind(NAMED_IN, municipality=NamedNode(place.iri), code=Text(code))
            found |= reader.kept("sections that name the district", query, _to_sections)
    return found


def _to_sections(rows: Sequence[Mapping[str, Term]]) -> set[str]:
    return {iri_of(row["section"]) for row in rows}


def _to_pairs(rows: Sequence[Mapping[str, Term]]) -> list[tuple[str, str]]:
    return [(iri_of(row["district"]), iri_of(row["section"])) for row in rows]


def _is_of_district(title: str) -> bool:
    return re.search(r"\b(?:districts?|zones?)\b", title, re.IGNORECASE) is not None


def _below(tree: CodeTree, section: str) -> Iterator[str]:
    pending, seen = [section], {section}
    while pending:
        for part in tree.children.get(pending.pop(), ()):
            if part not in seen:
                seen.add(part)
                pending.append(part)
                yield part


def _load_unread(reader: Reader, kind: RuleKind, sections: Iterable[str]) -> dict[str, tuple[tuple[str, bool], ...]]:
    nodes = [NamedNode(iri) for iri in sections]
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in reader.rows("words that were understood", bind(SPANS, sections=nodes)):
        if iri_of(row["kind"]) in _COVERING[kind]:
            spans[iri_of(row["section"])].append((int(term_text(row["start"])), int(term_text(row["end"]))))
    texts = {
        iri_of(row["section"]): term_text(row["text"])
        for row in reader.rows("texts of the sections", bind(TEXTS, sections=nodes))
    }
    return {
        node.value: tuple(find_unread(texts.get(node.value, ""), sorted(spans[node.value]), kind)) for node in nodes
    }


def find_unread(text: str, spans: Sequence[tuple[int, int]], kind: RuleKind) -> Iterator[tuple[str, bool]]:
    """Find the sentences of a text with a sign of a rule on which none of the sorted `spans` rests.

    Yields each with whether it is only an item of a list.
    """
    signs, is_list = _SIGNS[kind], kind == "permission" and len(spans) >= _LISTED
    if signs.search(text) is None and not is_list:
        return
    rows = _find_unread_rows(text, frozenset(spans)) if is_list and _DIVIDER in text else {}
    yield from ((words, False) for several in rows.values() for words in several)
    ends = _merge([(start, _extend(text, end)) for start, end in spans] if kind == "standard" else spans)
    sentences = list(_split(text))
    for number, (start, end) in enumerate(sentences):
        found = [(start + match.start(), start + match.end()) for match in signs.finditer(text[start:end])]
        if start in rows:
            continue
        if not found:
            if is_list and _is_item(text[start:end]) and not _overlaps(ends, start, end):
                yield text[start:end], True
            continue
        if kind == "standard":
            if all(_overlaps(ends, *each) for each in found):
                continue
        elif _overlaps(ends, start, end):
            continue
        else:
            sentence = text[start:end].strip()
            is_lead = _LEAD.search(sentence) or len(sentence.split()) <= _HEADING_WORDS
            following = sentences[number + 1 : number + 3]
            if is_lead and any(_overlaps(ends, *each) for each in following):
                continue
        yield text[start:end], False


def _find_unread_rows(text: str, spans: Set[tuple[int, int]]) -> Mapping[int, Sequence[str]]:
    """Find the codes in a matrix of permissions on which no permission rests, by start of the row.

    Each is in words with its row and its columns: ``Mill: SPR (R-1, C-2)``. Cells that are read are `spans`. A code is
    in a column that is read in some row, or after it.
    """
    rows: list[list[tuple[int, int]]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        bare, at, cells = line.rstrip("\n"), start, list[tuple[int, int]]()
        for words in bare.split(_DIVIDER):
            cells.append((at, at + len(words.rstrip())))
            at += len(words) + len(_DIVIDER)
        if len(cells) > 1:
            rows.append(cells)
        start += len(line)
    found: dict[int, list[str]] = {}
    heads: dict[int, list[list[str]]] = defaultdict(list)
    begun: set[int] = set()
    """Widths of the tables whose first row with a permission was reached."""
    first: dict[int, int] = {}
    for row in rows:
        own = [
            place for place, cell in enumerate(row) if place and cell in spans and _CODE.fullmatch(text[slice(*cell)])
        ]
        if own:
            first[len(row)] = min(own[0], first.get(len(row), own[0]))
    for row in rows:
        marks = [text[slice(*cell)] for cell in row]
        least, headers = first.get(len(row)), heads[len(row)]
        if least is None:
            continue
        if any(cell in spans for cell in row):
            begun.add(len(row))
        elif len(row) not in begun and len(set(marks)) == len(marks):
            headers.append(marks)
        if marks in headers:
            continue
        head = headers[-1] if headers else [""] * len(row)
        several: dict[str, list[str]] = defaultdict(list)
        for place in range(least, len(row)):
            if row[place] not in spans and _CODE.fullmatch(marks[place]):
                several[marks[place]].append(head[place])
        if several:
            found[row[0][0]] = [f"{marks[0]}: {code} ({', '.join(columns)})" for code, columns in several.items()]
    return found


def _is_item(sentence: str) -> bool:
    """Whether a sentence may be an item of a list of uses: a few words without a verb, a colon or a reference."""
    words = _LABEL.sub("", sentence.strip())
    return (
        len(words.split()) <= _ITEM_WORDS
        and words[:1].isupper()
        and _WORD.search(words) is not None  # not only the label of an item
        and not (_NO_ITEM.search(words) or _MEASURE.search(words))
    )


def _extend(text: str, end: int) -> int:
    """Extend a measure over the same measure in brackets: ``thirty percent (30%)``."""
    while (match := _REPEATED.match(text, end)) is not None:
        end = match.end()
    return end


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Split a text into sentences, by offsets. A sentence ends with its line."""
    start = 0
    for line in text.splitlines(keepends=True):
        last = 0
        if _INNER_END.search(line):
            for end in find_sentence_ends(line):
                if line[last:end].strip():
                    yield start + last, start + end
                last = end
        if line[last:].strip():
            yield start + last, start + len(line)
        start += len(line)


def _merge(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping spans."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _overlaps(merged: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect_left(merged, (start, -1))
    return (at < len(merged) and merged[at][0] < end) or (at > 0 and merged[at - 1][1] > start)
