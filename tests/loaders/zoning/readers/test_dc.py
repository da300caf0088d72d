"""The XML of the D.C. Code becomes the sections of its indexes, with citations, labels and annotations in place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from lxml import etree

from kg.errors import SourceError
from loaders.zoning.readers import dc, input_files
from loaders.zoning.readers.code_model import Citation, Code, Section

N = dc.NAMESPACE
ROOT = f'xmlns="{N}" xmlns:xi="http://www.w3.org/2001/XInclude" xmlns:codify="https://code.dccouncil.us/schemas/codify"'

INDEX = f"""<?xml version='1.0' encoding='utf-8'?>
<container {ROOT} containing-doc="D.C. Code"><prefix>Title</prefix><num>90</num><heading>Clouds.</heading>
<subheading>Subtitle I. High Clouds.</subheading>
<container><prefix>Chapter</prefix><num>2A</num><heading>Wisps.</heading>
<container><prefix>Subchapter</prefix><num>I</num><heading>General.</heading>
<xi:include href="./sections/90-201.xml"/><xi:include href="./sections/90-202.xml"/></container></container>
<container><prefix>Chapter</prefix><num>3</num><heading>Old Clouds. [Repealed].</heading>
<xi:include href="./sections/90-301.xml"/></container></container>"""

FULL = f"""<section {ROOT}><num>90-201</num><heading>Rules.</heading>
<text>For this <cite path="90|2A|I">subchapter</cite>:</text>
<para><num>(a)</num><heading>Wind.</heading><text>It shall  blow,
see <cite path="§90-202|(b)" proof="true">§ 90-202(b)</cite> and <cite doc="D.C. Law 9-9">D.C. Law 9-9</cite>.</text>
<para><num>(1)</num><para><num>(A)</num><text>East;</text></para><para><num>(B)</num><text>West.</text></para></para>
<aftertext>And 5<span codify:value=" "></span>knots.</aftertext></para>
<para><num>(b)</num><text>Table:<table><tr><th>Kind</th><th>Height</th></tr>
<tr><td>Low</td><td>1 mile</td></tr></table></text>
<text>[<em>Apis</em>]</text></para>
<!-- hidden -->
<annotations>
<annotation doc="D.C. Law 9-9" type="History" path="§2">May 1, 1999, D.C. Law 9-9, § 2, 4 DCR 5</annotation>
<annotation type="Section References">See <cite path="§90-202">§ 90-202</cite>.</annotation>
<annotation type="Applicability" eff="2019-01-02">Later.</annotation>
<text type="Editor's Notes">A note.</text></annotations></section>"""

SECOND = f"""<section {ROOT}><num>90-202</num><heading>Terms.</heading><para><num undesignated="true">(a)</num>
<text>In this title:</text><para><num>(1)</num><text>“Sky” means above.</text></para>
<para><num>(1)</num><text>“Sun” means it.</text></para></para></section>"""

GONE = (
    f"<section {ROOT}><num>90-301</num><reason>Repealed</reason><heading>Fog.</heading><text>Repealed.</text></section>"
)


@pytest.fixture
def title(tmp_path: Path) -> Path:
    (tmp_path / "sections").mkdir()
    (tmp_path / "index.xml").write_text(INDEX)
    for number, text in (("90-201", FULL), ("90-202", SECOND), ("90-301", GONE)):
        (tmp_path / "sections" / f"{number}.xml").write_text(text)
    return tmp_path / "index.xml"


def by_key(code: Code) -> dict[str, Section]:
    return {section.key: section for section in code.sections}


def test_the_hierarchy_is_that_of_the_index_with_keys_as_its_citations_have_them(title: Path) -> None:
    code = dc.parse(title)
    assert [(s.key, s.kind, s.number, s.level, s.title, s.status, s.file) for s in code.sections] == [
        ("90", "title", "90", 1, "Clouds.", None, None),
        ("90|subtitle I", "subtitle", "I", 2, "High Clouds.", None, None),
        ("90|2A", "chapter", "2A", 3, "Wisps.", None, None),
        ("90|2A|I", "subchapter", "I", 4, "General.", None, None),
        ("90-201", "section", "90-201", 5, "Rules.", None, "sections/90-201.xml"),
        ("90-202", "section", "90-202", 5, "Terms.", None, "sections/90-202.xml"),
        ("90|3", "chapter", "3", 3, "Old Clouds. [Repealed].", "repealed", None),
        ("90-301", "section", "90-301", 4, "Fog.", "repealed", "sections/90-301.xml"),
    ]
    assert (code.municipality, code.state, code.warnings) == ("District of Columbia", "DC", ())
    assert by_key(code)["90-201"].lines == (1, len(FULL.splitlines()))


def test_paragraphs_are_lines_with_labels_and_citations(title: Path) -> None:
    section = by_key(dc.parse(title))["90-201"]
    assert section.text == (
        "For this subchapter:\n(a) Wind. It shall blow, see § 90-202(b) and D.C. Law 9-9.\n(1) (A) East;\n(B) West.\n"
        "And 5 knots.\n(b) Table:\nKind | Height\nLow | 1 mile\n[Apis]"
    )
    assert [
        (".".join(s.path), section.text[s.start : s.end].split("\n")[0], s.heading) for s in section.subsections
    ] == [
        ("a", "(a) Wind. It shall blow, see § 90-202(b) and D.C. Law 9-9.", "Wind."),
        ("a.1", "(1) (A) East;", None),
        ("a.1.A", "(A) East;", None),
        ("a.1.B", "(B) West.", None),
        ("b", "(b) Table:", None),
    ]
    first = section.subsections[0]
    assert section.text[first.start : first.end].endswith("And 5 knots.")
    assert section.citations == (Citation("90|2A|I"), Citation("§90-202|(b)"), Citation(None, "D.C. Law 9-9"))
    (table,) = section.tables
    assert (table.header_rows, section.text[table.start : table.end]) == (1, "Kind | Height\nLow | 1 mile")


def test_annotations_are_notes_by_kind_with_what_they_cite(title: Path) -> None:
    section = by_key(dc.parse(title))["90-201"]
    assert [(note.kind, note.text, note.effective) for note in section.notes] == [
        ("History", "May 1, 1999, D.C. Law 9-9, § 2, 4 DCR 5", None),
        ("Section References", "See § 90-202.", None),
        ("Applicability", "Later.", "2019-01-02"),
        ("Editor's Notes", "A note.", None),
    ]
    assert section.history == ["May 1, 1999, D.C. Law 9-9, § 2, 4 DCR 5"]
    assert section.notes[0].citations == [Citation("§2", "D.C. Law 9-9")]
    assert section.notes[1].citations == [Citation("§90-202")]


def test_an_undesignated_number_is_no_label_and_labels_that_recur_are_told_apart(title: Path) -> None:
    section = by_key(dc.parse(title))["90-202"]
    assert section.text == "In this title:\n(1) “Sky” means above.\n(1) “Sun” means it."
    assert [part.path for part in section.subsections] == [("1",), ("1~2",)]


def test_what_is_absent_broken_twice_or_elsewhere_is_told_and_the_rest_is_read(title: Path, tmp_path: Path) -> None:
    sections = tmp_path / "sections"
    (sections / "90-301.xml").write_text("<section>")
    (sections / "90-202.xml").unlink()
    (sections / "90-999.xml").write_text(GONE.replace("90-301", "90-999"))
    index = INDEX.replace("</heading>\n<xi:include", '</heading><xi:include href="../../etc/passwd"/>\n<xi:include')
    title.write_text(
        index.replace("</container></container>", '<xi:include href="sections/90-201.xml"/></container></container>', 1)
    )
    code = dc.parse(title)
    assert [s.key for s in code.sections if s.kind == "section"] == ["90-201"]
    for told in (
        "90-202.xml: ",
        "90-301.xml: ",
        "outside of its folder",
        "which is also included",
        "No index includes",
    ):
        assert any(told in each for each in code.warnings), told


@pytest.mark.parametrize(
    "attack",
    [
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd">',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_and_document_types_are_refused(title: Path, attack: str, encoding: str) -> None:
    attacked = f"<?xml version='1.0' encoding='{encoding}'?>{attack}{FULL.replace('East', '&a;')}"
    section = title.parent / "sections" / "90-201.xml"
    section.write_bytes(attacked.encode(encoding))
    code = dc.parse(title)
    assert "90-201" not in by_key(code)
    assert any("90-201.xml" in each and "Document type" in each for each in code.warnings)
    title.write_bytes(f"<?xml version='1.0' encoding='{encoding}'?>{attack}{INDEX.partition('?>')[2]}".encode(encoding))
    with pytest.raises(SourceError):
        dc.parse(title)


def test_paragraphs_nested_beyond_reason_and_other_roots_are_refused(title: Path) -> None:
    deep = f"<section {ROOT}><num>90-201</num>{'<para>' * 5_000}{'</para>' * 5_000}</section>"
    (title.parent / "sections" / "90-201.xml").write_text(deep)
    (title.parent / "sections" / "90-202.xml").write_text("<html/>")
    assert [s.key for s in dc.parse(title).sections if s.kind == "section"] == ["90-301"]
    title.write_text("<html/>")
    with pytest.raises(SourceError, match="not a container"):
        dc.parse(title)


# The real files

BLOCKS = ("num", "text", "td", "th", "table", "heading", "prefix", "annotation")


@pytest.fixture(scope="module")
def titles(shared: Path) -> dict[Path, Code]:
    folder = shared / "data" / "zoning" / "dc-code"
    found = input_files.find_codes(sorted(folder.rglob("*.xml")))
    assert (len(found.inputs), found.others) == (2, [])
    return {each.path: each.read() for each in found.inputs}


def test_the_sections_of_the_real_titles_are_those_of_their_indexes(titles: dict[Path, Code]) -> None:
    for index, code in titles.items():
        root = etree.parse(index).getroot()
        listed = [str(each.get("href")).removeprefix("./") for each in root.iter("{*}include")]
        sections = [section for section in code.sections if section.kind == "section"]
        assert sorted(str(section.file) for section in sections) == sorted(listed)
        assert sum(s.kind not in ("section", "subtitle") for s in code.sections) == len([*root.iter("{*}container")])
        assert len({section.key for section in code.sections}) == len(code.sections)
        assert code.warnings == ()


def test_every_word_of_the_real_titles_is_in_a_text_or_a_note_once(titles: dict[Path, Code]) -> None:
    for index, code in titles.items():
        for section in code.sections:
            if section.file is None:
                continue
            root = etree.parse(index.parent / section.file, etree.XMLParser(remove_comments=True)).getroot()
            for element in [*root.iter("{*}num", "{*}heading", "{*}reason")]:
                if element.getparent() is root or element.get("undesignated"):
                    element.text = None
            # Cells, paragraphs and labels are separate words; inline elements are not.
            for element in root.iter(
                "{*}num", "{*}text", "{*}td", "{*}th", "{*}table", "{*}heading", "{*}prefix", "{*}annotation"
            ):
                element.tail = f" {element.tail or ''}"
            for element in root.iter("{*}span"):
                if len(element) == 0:
                    element.text = element.text or element.get("{https://code.dccouncil.us/schemas/codify}value")
            words = Counter("".join(root.itertext()).split())
            ours = Counter(section.text.replace(" | ", " ").split())
            for note in section.notes:
                ours += Counter(note.text.split())
            ours.pop("|", None)
            assert ours == words, section.key


def test_every_citation_of_the_real_titles_is_kept(titles: dict[Path, Code]) -> None:
    kept = Counter(
        (each.path, each.document)
        for code in titles.values()
        for section in code.sections
        for citations in (section.citations, *(note.citations for note in section.notes))
        for each in citations
    )
    marked = Counter(
        (each.get("path"), each.get("doc"))
        for index in titles
        for path in index.parent.glob("sections/*.xml")
        for each in etree.parse(path).getroot().iter("{*}cite", "{*}annotation")
        if each.get("path") or each.get("doc")
    )
    assert kept == marked
