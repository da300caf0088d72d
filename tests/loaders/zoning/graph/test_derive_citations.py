"""Claims about the citations of a section: their targets, relations and confidences. The texts are our own."""

from __future__ import annotations

from kg.store.protocol import term_text
from kg.vocabulary import ELI, KG, RDF, mint
from loaders.citations.section_citations import UNRESOLVED, UNRESOLVED_WITHOUT_SEPARATOR, WITH_WORD
from loaders.zoning.extraction.citation_resolution import Index
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.graph.derive import build_claims
from loaders.zoning.readers.code_model import Section

TEXT = "Nothing herein requires compliance with § 3.2. Sheds in § 3.9. Barns in § 7, this chapter, § 3.1."


def test_claims_have_targets_that_exist_and_confidences_of_their_rule() -> None:
    index = Index([Section(number, number, "", "section", 1, None, 0, TEXT) for number in ("3.1", "3.2")])
    shared = Authorities("Marl", "UT")
    quads = build_claims(TEXT, "3.1", shared, mint("graph", "test"), index, "UT")
    said = {(quad.subject, quad.predicate): quad.object for quad in quads if quad.predicate != RDF.type}
    found = {
        (term_text(words), said.get((claim, RDF.object)), term_text(said[claim, KG.confidence]))
        for (claim, predicate), words in said.items()
        if predicate == KG.rawCitation
    }
    assert found == {
        ("§ 3.2", shared.section("3.2"), str(WITH_WORD)),
        ("§ 3.9", None, str(UNRESOLVED)),
        ("§ 7", None, str(UNRESOLVED_WITHOUT_SEPARATOR)),
    }
    assert {value for (_, predicate), value in said.items() if predicate == RDF.predicate} == {ELI.cites}
