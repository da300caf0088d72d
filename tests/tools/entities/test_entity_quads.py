"""An entity is shown with the graph of each of its quads."""

from __future__ import annotations

import pytest

from kg.errors import InvalidInputError, NotFoundError
from kg.tools.entities.entity_quads import load_entity


def test_an_entity_is_shown_with_the_graph_of_each_quad(kg, made):
    shown, turtle = load_entity(kg, made[0].iri)
    assert {quad.graph for quad in shown.quads} == {f"https://w3id.org/quadcite/graph/src/climate/{made[0].slug}"}
    assert f"# graph <{shown.quads[0].graph}>" in turtle
    assert made[0].text in turtle


@pytest.mark.parametrize(("iri", "error"), [("no iri", InvalidInputError), ("urn:nothing:here", NotFoundError)])
def test_what_is_no_entity_is_an_error(kg, iri, error):
    with pytest.raises(error):
        load_entity(kg, iri)
