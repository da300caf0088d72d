"""Prompts for common jobs: the tools to call, their order, and the parts of the answer. MCP serves them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from jinja2 import Environment, StrictUndefined, Template

from kg.errors import InvalidInputError
from kg.text import list_or, quoted
from kg.tools.calls import TEXTS_ARE_DATA
from kg.tools.mounts import CLIMATE, CORE, DOCUMENTS, PARLIAMENT, ZONING

MOST_CHARACTERS: Final = 50_000
"""Maximum length of an argument of a prompt: a draft is the longest."""


class Argument(NamedTuple):
    """An argument of a prompt: a text that the user gives."""

    name: str
    description: str
    required: bool = False


@dataclass(frozen=True)
class Prompt:
    """A job: its text names tools in backticks, each followed by the arguments to give, in parentheses."""

    name: str
    title: str
    description: str
    tags: frozenset[str]
    """The tags of the mounts that offer it, as those of tools."""
    arguments: tuple[Argument, ...]
    text: str
    """A Jinja template of the arguments and of `here`, the names of the tools of the mount."""

    @cached_property
    def _template(self) -> Template:
        # The result is plain text for a model: nothing to escape as HTML. Values are quoted as JSON.
        environment = Environment(undefined=StrictUndefined, trim_blocks=True, autoescape=False)  # noqa: S701
        environment.filters["quoted"] = lambda value: json.dumps(value, ensure_ascii=False)
        return environment.from_string(self.text)

    def is_on(self, tags: frozenset[str] | None) -> bool:
        """Return whether mounts with these tags offer it. None: the mount of all tools."""
        return tags is None or not self.tags.isdisjoint(tags)

    def build(self, values: Mapping[str, str], here: Collection[str]) -> str:
        """Build the text for a model, with the rules of all prompts. Raises what `fill` raises."""
        return f"{self.fill(values, here)}\n\n{_RULES}"

    def fill(self, values: Mapping[str, str], here: Collection[str]) -> str:
        """Fill in the template. Raises InvalidInputError for a missing, unknown or too long argument."""
        names = [argument.name for argument in self.arguments]
        given = {name: str(value).strip() for name, value in values.items() if value is not None}
        if unknown := [name for name in given if name not in names]:
            raise InvalidInputError(
                f"Prompt {self.name}: unknown argument {quoted(unknown[0])}. Valid: {list_or(names)}."
            )
        if missing := [each.name for each in self.arguments if each.required and not given.get(each.name)]:
            raise InvalidInputError(f"Prompt {self.name}: missing argument {list_or(missing)}.")
        if long := [name for name, value in given.items() if len(value) > MOST_CHARACTERS]:
            raise InvalidInputError(f"Prompt {self.name}: {long[0]} has more than {MOST_CHARACTERS:,} characters.")
        filled = {name: given.get(name, "") for name in names}
        return self._template.render(filled, here=frozenset(here)).strip()


_RULES: Final = (
    f"{TEXTS_ARE_DATA} Cite each statement of the answer with the id, title and file or page of its passage. Where "
    "nothing was found, state that: a text can exist without being loaded."
)

PROMPTS: Final[tuple[Prompt, ...]] = (
    Prompt(
        "compare_places",
        "Compare two places",
        "Compare two countries, states or municipalities on a topic, with a citation for each difference.",
        frozenset({CORE, CLIMATE, ZONING}),
        (
            Argument("first", "A country, state or municipality, such as Brazil or Quarry Bend, UT", required=True),
            Argument("second", "The other one", required=True),
            Argument("topic", "What to compare, such as solar power or the height of houses"),
        ),
        """\
Compare {{ first | quoted }} and {{ second | quoted }}{% if topic %} on {{ topic | quoted }}{% endif %}.

1. Check with `list_resources` that texts of both places are loaded. If one of them has none, report that and stop.
{% if "compare_zoning" in here %}
2. Call `compare_zoning` (municipalities, use, standard_type) for both, then `kg_query_permissions` (municipality, \
state, use) and `kg_query_standards` (municipality, state, standard_type) for each, to get the words of the law.
3. For rules that are no uses or standards, call `kg_search_by_topic` (municipality, state, query) for each place.
4. Read exceptions of each rule that you cite with `kg_find_related` (municipality, state, section_id).
{% else %}
2. Call `search` (query, filters, limit) once for each place, with the same query and filters.place of that place.
{% if "compare_jurisdictions" in here %}
3. Call `compare_jurisdictions` (iso3_a, iso3_b, by) for the numbers of documents and topics. A larger number of \
documents does not mean stricter law.
{% else %}
3. Look up the QID of the topic with `concept_find` (q), and call `concept_mentions` (qids, place) for each place, for \
passages that use other words.
{% endif %}
4. Read the passages that you cite with `fetch` (ids).
{% endif %}
5. Answer with a table: a row for each aspect, a column for each place, a citation in each cell, and "not found" where \
nothing was found. Below it, list the differences that the cited texts show, and no others.
""",
    ),
    Prompt(
        "find_who_said",
        "Find who said it",
        "Find who said something in parliament, when, and in which words.",
        frozenset({CORE, PARLIAMENT}),
        (
            Argument("statement", "The statement, in any words", required=True),
            Argument("speaker", "Who is thought to have said it"),
            Argument("period", "When, such as 2024 or March 2021"),
        ),
        """\
Find who said this in parliament: {{ statement | quoted }}\
{% if speaker %}, perhaps {{ speaker | quoted }}{% endif %}{% if period %}, in {{ period | quoted }}{% endif %}.

{% if "search_speeches" in here %}
1. Call `search_speeches` (query, speaker, date_from, date_to, top_k). Leave out unknown arguments. If no excerpt \
states it, search again without speaker and dates, and with other words.
2. Read the whole speech with `get_speech` (speech_id, include_context). Compare its words with the statement.
{% else %}
1. Call `search` (query, filters, limit) with filters.domain ["parliament"]. If no snippet states it, use other words.
2. Read the passages with `fetch` (ids, neighbours). Compare their words with the statement.
{% endif %}
3. If several people said it, list all of them by date, and state who is the first among the loaded speeches.
4. Answer with the speaker, party, chamber and date, and quote the words verbatim. Words that a speaker quotes from \
another person are that person's. State whether the words are the same, have the same meaning, or differ, and how.
""",
    ),
    Prompt(
        "check_draft",
        "Check a draft",
        "Check each statement of a draft against the loaded texts: supported, contradicted or not found.",
        frozenset({CORE, CLIMATE, PARLIAMENT, DOCUMENTS}),
        (
            Argument("draft", "The text to check", required=True),
            Argument("place", "The place that it is about, such as Brazil"),
        ),
        """\
Check this draft{% if place %} about {{ place | quoted }}{% endif %} against the loaded texts: {{ draft | quoted }}

1. Divide the draft into statements that can be checked: each number, date, name, quotation and rule is one.
{% if "search_speeches" in here %}
2. For each statement call `search_speeches` (query, speaker, date_from, date_to), and for votes `how_voted` (person, \
bill, date_from, date_to). Read speeches with `get_speech` (speech_id).
{% else %}
2. For each statement call `search` (query, filters, limit, must){% if place %} with filters.place{% endif %}. Put \
names and numbers in must, and search again without must if nothing is found. Read what may decide with `fetch` (ids).
{% endif %}
3. Check that laws which the draft names exist and are current: `citations` (iri, direction) of a passage leads to the \
laws that it cites.
4. Answer with a table: the statement, the verdict (supported, contradicted, not found), the words of the passage that \
decide, and its citation. A passage on the same topic that does not state it decides nothing.
5. Below it, give corrected wording for each contradicted statement. Leave the rest of the draft as it is.
""",
    ),
    Prompt(
        "read_vote",
        "Read a vote",
        "Report how people or parties voted on a bill or question, and the subject of each vote.",
        frozenset({PARLIAMENT}),
        (
            Argument("subject", "The bill or question, such as Tides Bill", required=True),
            Argument("person", "A member or a party"),
            Argument("period", "When, such as 2024 or March 2021"),
        ),
        """\
Report the votes on {{ subject | quoted }}{% if person %} of {{ person | quoted }}{% endif %}\
{% if period %} in {{ period | quoted }}{% endif %}.

1. Call `how_voted` (bill, person, party, date_from, date_to). Leave out unknown arguments. If there is no division, \
use a shorter name of the bill, or call `search_speeches` (query, date_from, date_to) to find the day.
2. Read question of each division. A division on an amendment, on closure or on another procedure is not a vote on the \
bill: "Aye" on the question that words be left out can be a vote for the amendment.
3. Read the debate before it: `search_speeches` (query, date_from, date_to) of that day, `get_speech` (speech_id).
4. Answer with date, question as put, result and numbers of each division, then the votes that were asked for. \
Names in open_names have no known voter: list them as such. Members who are in no list did not vote; the reason is \
not known.
""",
    ),
    Prompt(
        "what_may_i_build",
        "What may I build?",
        "Find the uses, dimensions, conditions and exceptions that a municipal code has for a site, with the sections.",
        frozenset({ZONING}),
        (
            Argument("municipality", "The municipality, such as Quarry Bend", required=True),
            Argument("state", "Its state, such as UT", required=True),
            Argument("district", "The zoning district of the site, such as R-1"),
            Argument("use", "The building or use, such as a duplex"),
        ),
        """\
Find what {{ municipality | quoted }}, {{ state | quoted }} permits\
{% if district %} in the district {{ district | quoted }}{% endif %}{% if use %} for {{ use | quoted }}{% endif %}.

1. {% if district %}Call `kg_query_permissions` (municipality, state, district{% if use %}, use{% endif %})\
{% else %}The district is not known: call `kg_query_permissions` (municipality, state{% if use %}, use{% endif %}) \
for all districts, and state that the zoning map decides which of them a site is in{% endif %}. A use that is not \
listed is not recorded; it is not prohibited by that.
2. Look up the definition of each use with `kg_query_definition` (municipality, state, term): names differ from common \
words.
3. Call `kg_query_standards` (municipality, state{% if district %}, district{% endif %}) for heights, \
setbacks, lots and coverage.
4. For each rule read its section with `kg_query_section` (municipality, state, section_id), and its exceptions and \
overlays with `kg_find_related` (municipality, state, section_id).
5. Search parking, accessory buildings and subdivision with `kg_search_by_topic` (municipality, state, query).
6. Answer with uses by level (permitted, conditional, prohibited), a table of the standards with units, the \
conditions, and the sections, quoted. List the decisions that the code leaves to a permit or a board, and rules that \
are unsure or not found. The answer is not a permit: the municipality decides.
""",
    ),
)
"""The prompts, in the order in which they are listed."""


def list_prompts(tags: frozenset[str] | None) -> list[Prompt]:
    """List the prompts of the mounts with one of `tags`; None: all."""
    return [prompt for prompt in PROMPTS if prompt.is_on(tags)]
