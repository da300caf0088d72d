"""Finds where a code may list a use that is not recorded, and the sections that prohibit uses that are not listed.

That uses not listed are prohibited is cited in the words of the code and never concluded from a list, since a use that
was not found may be listed in a sentence that was not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.errors import NotFoundError
from kg.fuzzy_names import fold
from kg.retrieval.choices import shorten
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.token_budget import Lean, clipped
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.tools.zoning.coverage import check_coverage, compile_finder, find_headed, rank_by_words, split_sentences
from kg.tools.zoning.municipalities import Place, get_section_key
from kg.tools.zoning.rule_search import RuleKind
from kg.tools.zoning.term_lookup import Named, Vocabulary
from kg.words import singular
from kg.zoning_summaries import code_tree

SHOWN: Final = 3
"""Maximum number of sentences about uses that are not listed, and of sentences with words of a use in a message."""
_CHARACTERS: Final = 400
"""Maximum characters of a sentence about uses that are not listed."""
_SHORTEST: Final = 3
"""Least characters of a word that is looked for in texts."""
_SHORT: Final = 160
"""Maximum characters of a sentence in a message."""

CONTAINING: Final = """
SELECT ?section ?text WHERE {
  ?section kg:jurisdiction $municipality ; a kg:CodeSection ; schema:text ?text
  FILTER(REGEX(?text, $pattern, "i"))
}"""

_ANY: Final = r"(?:[^.;]|\.(?=\w))"
"""A character within a clause: the point in ``Section 5.2`` ends none."""
_LISTED: Final = (
    "(?:listed|enumerated|mentioned|named|specified|permitted|allowed|authorized|provided for|included|identified|"
    "designated|stated|set (?:out|forth)|described|shown)"
)
_NOT_LISTED: Final = rf"(?:\bnot (?:[a-z]+ ){{0,4}}?{_LISTED}|\bunlisted|\bother than [^.;]{{0,40}}{_LISTED})"
_PROHIBITED: Final = (
    r"(?:(?:is|are|be) (?:(?:\w+ly|hereby|also|therefore|deemed|considered|to be|declared) )*"
    r"(?:prohibited|forbidden|unlawful|not (?:permitted|allowed))|(?:shall|may|must) not be (?:permitted|allowed))"
)
_UNLISTED_USES: Final = re.compile(
    r"^\W*(?:\(?\w{1,3}[.)]\s+)*(?:[A-Z][\w -]{0,40}[.:]\s+)?(?:in (?:any|all|each|every|this|the) [^.;,]{1,40}, )?"
    r"(?:(?:any|all|a|an|every|each|the) )?(?:(?:other|such|land|principal|main|unlisted) )*uses?\b"
    rf"(?:{_ANY}{{0,80}}?{_NOT_LISTED}|(?<=unlisted use)|(?<=unlisted uses)){_ANY}{{0,120}}?\b{_PROHIBITED}",
    re.IGNORECASE,
)
"""``A use that is not listed for a district is prohibited there``. Accessory uses and signs do not count."""
_ONLY_LISTED: Final = re.compile(
    r"^\W*(?:\(?\w{1,3}[.)]\s+)*(?:[A-Z][\w -]{0,40}[.:]\s+)?(?:in (?:an?|the|any|each) [^.;,]{1,50}?,? )?"
    r"no (?:[a-z]+,? ){0,8}?(?:building|structure|land|lot|premises|parcel|tract)s?\b[^.;]{0,120}?\bused\b[^.;]{0,160}?"
    r"\b(?:except|other than|unless|but)\b"
    rf"(?:[^.;]{{0,60}}\b(?:uses?|purposes?)\b[^.;]{{0,40}}?\b{_LISTED}|"
    r" (?:for |as )?(?:one or more of )?the following\b)",
    re.IGNORECASE,
)
"""``No land shall be used except for the purposes permitted in the district``."""
_NO_OTHERS: Final = re.compile(r"\bthe following uses,? (?:and|but) no others?\b", re.IGNORECASE)
_OF_LIST: Final = re.compile(r"\bfollowing\b", re.IGNORECASE)
"""A list is that of a district: its sentence counts under the heading of a district, or if it names one."""
_PREFILTER: Final = (
    f"unlisted|no others?|not ([a-z]+ ){{0,4}}{_LISTED.replace('?:', '')}|no [^.;]*(except|other than|unless|but)"
)
_SPECIAL: Final = re.compile(
    r"\b(?:accessory|home occupations?|signs?|temporary|nonconform\w*|non-conform\w*|parking|fences?|animals?|"
    r"variances?|planned|overlay)\b",
    re.IGNORECASE,
)
"""Headings of sections that are about some uses only."""


class UnlistedUses(Lean):
    """A sentence of a code that prohibits the uses that it does not list."""

    section_ref: str
    words: str


def find_unlisted(
    reader: Reader, place: Place, districts: Mapping[str, Named], known: Mapping[str, Named]
) -> list[UnlistedUses]:
    """Find the sentences that prohibit, in any of `districts`, the uses that the code does not list.

    A sentence in the sections of some of the districts `known` is about those only.
    """
    try:
        tree = code_tree.cached_tree(reader.kg, place.iri)
    except NotFoundError:
        return []
    query = bind(CONTAINING, municipality=NamedNode(place.iri), pattern=Text(_PREFILTER))
    found = reader.kept("sections on uses not listed", query, _read_unlisted)
    headed, find_named = find_headed(tree, known), compile_finder(known)

    def is_about(section: str, words: str) -> bool:
        about = find_named(words, is_inside=True) or headed.get(section)
        if about:
            return not about.isdisjoint(districts)
        return _OF_LIST.search(words) is None and _SPECIAL.search(tree.sections[section].title) is None

    return [
        UnlistedUses(section_ref=get_section_key(section), words=clipped(words, _CHARACTERS))
        for section, words in found
        if section in tree.sections and is_about(section, words)
    ][:SHOWN]


def _read_unlisted(rows: Sequence[Mapping[str, Term]]) -> list[tuple[str, str]]:
    return [
        (iri_of(row["section"]), sentence)
        for row in sorted(rows, key=lambda row: iri_of(row["section"]))
        for sentence in _sentences(term_text(row["text"]))
        if prohibits_unlisted(sentence)
    ]


def prohibits_unlisted(sentence: str) -> bool:
    """Whether a sentence prohibits the uses that are not listed."""
    return any(each.search(sentence) is not None for each in (_UNLISTED_USES, _ONLY_LISTED, _NO_OTHERS))


def _sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in split_sentences(text)]


def find_mentions(
    reader: Reader, place: Place, districts: Mapping[str, Named], known: Mapping[str, Named], use: str
) -> list[str]:
    """Find the sections whose text has the words of `use` side by side, in the singular or plural.

    The sections of other districts among those `known` are left out.
    """
    words = [singular(word) for word in fold(use).split()]
    longest = max(words, key=len, default="")
    try:
        tree = code_tree.cached_tree(reader.kg, place.iri)
    except NotFoundError:
        return []
    if len(longest) < _SHORTEST:
        return []
    pattern = re.escape(longest.removesuffix("y"))
    query = bind(CONTAINING, municipality=NamedNode(place.iri), pattern=Text(pattern))
    headed = find_headed(tree, known)
    found = _read_mentions(words, reader.rows("sections with the words", query))
    return [get_section_key(iri) for iri in found if iri not in headed or not headed[iri].isdisjoint(districts)]


def _read_mentions(words: Sequence[str], rows: Sequence[Mapping[str, Term]]) -> list[str]:
    wanted = f" {' '.join(words)} "
    return sorted(
        iri_of(row["section"])
        for row in rows
        if wanted in f" {' '.join(singular(word) for word in fold(term_text(row['text'])).split())} "
    )


def describe_unrecorded(
    reader: Reader, place: Place, words: Vocabulary, districts: Mapping[str, Named], use: str
) -> str:
    """Describe where the code may list a use that is not recorded, and what prohibits uses that it does not list."""
    said = []
    if mentions := find_mentions(reader, place, districts, words.districts, use):
        said.append(f"The text of {shorten(mentions)} has these words: read it with kg_query_section.")
    said += describe_gaps(reader, "permission", place, words, districts, use)
    if unlisted := find_unlisted(reader, place, districts, words.districts):
        said.append(describe_unlisted(unlisted))
        said += [f"{each.section_ref}: “{clipped(each.words, _SHORT)}”." for each in unlisted[:1]]
    return " ".join(said)


def describe_gaps(
    reader: Reader, kind: RuleKind, place: Place, words: Vocabulary, districts: Mapping[str, Named], asked: str
) -> Iterator[str]:
    """Describe what of districts was not understood, where nothing that was `asked` for is recorded."""
    coverage = check_coverage(reader, kind, place, districts, words.districts, asked)
    if count := len(coverage.gaps):
        signs, what, tool = (
            ("words of permission", "use", "kg_query_permissions")
            if kind == "permission"
            else ("measures", "standard_type", "kg_query_standards")
        )
        where = shorten([each.code for each in districts.values()])
        several = f"{count} sentences" if count > 1 else "A sentence"
        yield (
            f"{several} with {signs} about {where}, in {shorten(coverage.sections)}, {'were' if count > 1 else 'was'} "
            f"not understood. The answer may be there: without {what}, {tool} lists them."
        )
        rank = rank_by_words(kind, asked)
        for gap in coverage.gaps[:SHOWN]:
            if rank(gap.words):
                yield f"{get_section_key(gap.section)}: “{clipped(gap.words, _SHORT)}”."
    if coverage.lost:
        yield f"No section of {shorten(coverage.lost)} was found."


def describe_unlisted(unlisted: Sequence[UnlistedUses]) -> str:
    """Describe what prohibits the uses that are not listed."""
    refs = shorten(list(dict.fromkeys(each.section_ref for each in unlisted)))
    return (
        f"{refs} prohibits uses that are not listed. That holds for this use only if no section lists it, also under "
        "another name."
    )
