"""Word documents: automatic numbers, tracked changes, forms, notes and tables, from parts written by hand."""

from __future__ import annotations

import io
import zipfile

import pytest

from loaders.files.loader import read_file
from loaders.files.readers.text_model import FileText

W = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)
STRICT = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'


def read(body: str, namespace: str = W, **parts: str) -> FileText:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f"<w:document {namespace}><w:body>{body}</w:body></w:document>")
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:{name} {namespace}>{content}</w:{name}>")
    return read_file(stream.getvalue(), ".docx", "a.docx")


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def par(content: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{content if content.startswith('<') else run(content)}</w:p>"


def item(text: str, list_id: int, level: int = 0) -> str:
    return par(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list_id}"/></w:numPr>')


def level(place: int, form: str, text: str, more: str = "", start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{place}"><w:start w:val="{start}"/><w:numFmt w:val="{form}"/>{more}<w:lvlText w:val="{text}"/>'
        "</w:lvl>"
    )


def num(list_id: int, shared: int, more: str = "") -> str:
    return f'<w:num w:numId="{list_id}"><w:abstractNumId w:val="{shared}"/>{more}</w:num>'


def abstract(ident: int, *levels: str) -> str:
    return f'<w:abstractNum w:abstractNumId="{ident}">{"".join(levels)}</w:abstractNum>'


RESTART = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{}"/></w:lvlOverride>'


def test_numbers_continue_restart_and_name_the_levels_above_as_word_shows_them() -> None:
    legal = abstract(
        0,
        level(0, "upperRoman", "Article %1."),
        level(1, "decimal", "%1.%2", "<w:isLgl/>"),
        level(2, "lowerLetter", "(%3)", start=26),
        level(3, "decimalZero", "%4)", '<w:lvlRestart w:val="1"/>'),
    )
    numbering = legal + abstract(1, level(0, "decimal", "%1.")) + num(1, 0) + num(2, 1) + num(3, 1, RESTART.format(5))
    body = "".join(
        [
            item("a", 1), item("b", 1, 1), item("c", 1, 2), item("d", 1, 2), item("e", 1, 3), item("f", 1, 2),
            item("g", 1, 3), item("h", 1, 1), item("i", 1), item("j", 1, 1), item("k", 1, 3),
            par("-"), item("l", 2), item("m", 3), item("n", 2), item("o", 3),
        ]
    )  # fmt: skip
    lines = [line.strip() for line in read(body, numbering=numbering).text.split("\n") if line.strip() not in ("", "-")]
    assert lines == [
        "Article I. a", "1.1 b", "(z) c", "(aa) d", "01) e", "(bb) f", "02) g", "1.2 h", "Article II. i", "2.1 j",
        "01) k",
        "1. l", "5. m", "6. n", "7. o",
    ]  # fmt: skip


def test_styles_number_and_hide_and_strike() -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 1"/><w:pPr><w:numPr>'
        '<w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="H2"><w:name w:val="Part"/><w:basedOn w:val="H"/></w:style>'
        '<w:style w:type="character" w:styleId="Old"><w:name w:val="Old"/><w:rPr><w:strike/></w:rPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="Gone"><w:name w:val="Gone"/><w:rPr><w:vanish/></w:rPr></w:style>'
    )
    old = '<w:rStyle w:val="Old"/>'
    body = (
        par("Scope", '<w:pStyle w:val="H"/>')
        + par("Fees", '<w:pStyle w:val="H2"/>')
        + par(run("Pay ") + run("40 ", old) + run("55", f'{old}<w:strike w:val="0"/>'))
        + par("not for the council", '<w:pStyle w:val="Gone"/>')
    )
    numbering = abstract(0, level(0, "decimal", "Sec. %1", '<w:pStyle w:val="H"/>')) + num(1, 0)
    found = read(body, styles=styles, numbering=numbering)
    assert found.text == "# Sec. 1 Scope\n\n# Sec. 2 Fees\n\nPay 55"
    assert [each.partition(": ")[2].rpartition(" ")[2] for each in found.warnings][-1] == "4."


@pytest.mark.parametrize(
    "content",
    [
        run("40 crowns ", "<w:strike/>"),
        run("40 crowns ", '<w:dstrike w:val="true"/>'),
        '<w:del><w:r><w:delText xml:space="preserve">40 crowns </w:delText></w:r></w:del>',
        f"<w:moveFrom>{run('40 crowns ')}</w:moveFrom>",
    ],
)
@pytest.mark.parametrize("namespace", [W, STRICT])
def test_deleted_words_are_left_out_and_counted(content: str, namespace: str) -> None:
    found = read(par(f"{run('Pay ')}{content}<w:ins>{run('55')}</w:ins>"), namespace)
    assert found.text == "Pay 55"
    assert [": 2." in each for each in found.warnings] == [True]


def test_a_deleted_end_of_a_paragraph_joins_it_with_the_next() -> None:
    assert (
        read(
            par("Pay ", "<w:rPr><w:del/></w:rPr>") + item("55", 1),
            numbering=abstract(0, level(0, "decimal", "%1.")) + num(1, 0),
        ).text
        == "1. Pay 55"
    )


@pytest.mark.parametrize("properties", ["<w:vanish/>", '<w:sz w:val="2"/>', '<w:color w:val="FFFFFF"/>'])
def test_hidden_words_are_left_out_and_counted(properties: str) -> None:
    found = read(par(run("Pay ") + run("no tax ", properties) + run("55")))
    assert (found.text, [": 2." in each for each in found.warnings]) == ("Pay 55", [True])


def field(data: str, name: str, result: str = "") -> str:
    return (
        f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}</w:ffData></w:fldChar></w:r><w:r><w:instrText> {name} '
        f'</w:instrText></w:r>{result}<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


def test_a_field_without_an_end_takes_no_text_with_it() -> None:
    found = read(
        par(run("By ") + '<w:r><w:fldChar w:fldCharType="begin"/></w:r>' + run("law")) + par(run("a fee is due"))
    )
    assert (found.text.split(), len(found.warnings)) == (["By", "law", "a", "fee", "is", "due"], 1)


def test_forms_notes_raised_words_and_formulas_are_read() -> None:
    box = (
        '<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{}"/></w14:checkbox></w:sdtPr><w:sdtContent>{}'
        "</w:sdtContent></w:sdt>"
    )
    raised, lowered = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    choice = '<w:ddList><w:result w:val="1"/><w:listEntry w:val="north"/><w:listEntry w:val="south"/></w:ddList>'
    separate = '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
    formula = (
        "<m:oMath><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
        "<m:r><m:t>+</m:t></m:r><m:rad><m:e><m:r><m:t>yz</m:t></m:r></m:e></m:rad></m:oMath>"
    )
    body = (
        par(box.format(1, run("\u2612")) + run(" roof ") + box.format(0, run("\u2610")) + run(" wall"))
        + par(field('<w:checkBox><w:default w:val="1"/></w:checkBox>', "FORMCHECKBOX") + run(" cellar ")
              + field(choice, "FORMDROPDOWN") + run(" ") + field("", "FORMTEXT", separate + run("Odile")))
        + par(run("25") + run("1", raised) + run(" feet, CO") + run("2", lowered) + run(", 30") + note + run(" days"))
        + par(formula)
        + par(run("No") + "<w:r><w:noBreakHyphen/></w:r>" + run("go, co") + "<w:r><w:softHyphen/></w:r>" + run("op"))
    )  # fmt: skip
    notes = f'<w:footnote w:type="separator" w:id="0"/><w:footnote w:id="2">{par("Save at night.")}</w:footnote>'
    assert read(body, footnotes=notes).text.split("\n\n") == [
        "\u2611 roof \u2610 wall", "\u2611 cellar south Odile", "25\u00b9 feet, CO\u2082, 30\u00b9 days",
        "x\u00b2+\u221ayz", "No-go, coop", "\u00b9 Save at night.",
    ]  # fmt: skip


def cell(content: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{content}</w:tc>"


def test_tables_have_all_cells_and_those_in_them_and_no_deleted_rows() -> None:
    inner = f"<w:tbl><w:tr>{cell(par('p'))}{cell(par('q'))}</w:tr></w:tbl>"
    rows = [
        cell(par("a"), '<w:vMerge w:val="restart"/>') + cell(par("b"), '<w:gridSpan w:val="2"/>'),
        cell(par(""), "<w:vMerge/>") + cell(par("c") + par("d")) + cell(inner + par("e")),
    ]
    body = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    deleted = f"<w:tr><w:trPr><w:del/></w:trPr>{cell(par('old'))}{cell(par('older'))}</w:tr>"
    found = read(f"<w:tbl>{body}{deleted}</w:tbl>")
    assert found.text == "| a | b | b |\n| --- | --- | --- |\n| a | c d | e |\n\n| p | q |\n| --- | --- |"
    assert [": 2." in each for each in found.warnings] == [True]


def test_elements_that_are_not_read_are_one_warning_for_each_kind() -> None:
    drawn = "<w:r><w:drawing><pic/></w:drawing></w:r>"
    found = read(par(f"{run('text')}{drawn}{drawn}<w:strange/>") + "<w:altChunk/>", header1="")
    assert found.text == "text"
    assert len(found.warnings) == 3
    assert sum("(2)" in each for each in found.warnings) == 1
