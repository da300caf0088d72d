"""An update takes the dataset that its request gives it, and no second one."""

from __future__ import annotations

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.sparql.dataset_clauses import add_dataset

EX = "http://example.com/"
G, H = NamedNode(EX + "g"), NamedNode(EX + "h")


@pytest.mark.parametrize(
    "update",
    [
        "WITH <http://e/> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "INSERT { ?s ?p ?o } USING <http://e/> WHERE { ?s ?p ?o }",
        "CLEAR ALL ; INSERT { ?s ?p ?o } USING NAMED <http://e/> WHERE { GRAPH ?g { ?s ?p ?o } }",
        "PREFIX : <http://e/> WITH:g INSERT { ?s ?p ?o } WHERE { ?s ?p ?o }",
    ],
)
def test_an_update_that_names_its_dataset_cannot_be_given_another(update: str) -> None:
    with pytest.raises(InvalidInputError, match=r"WITH|USING"):
        add_dataset(update, [G], [])


def test_a_prefix_called_with_or_where_is_none() -> None:
    update = "PREFIX with: <http://e/> PREFIX where: <http://e/> INSERT DATA { with:a where:b 1 }"
    assert add_dataset(update, [G], []) == update


@given(st.lists(st.sampled_from(["CLEAR ALL", "INSERT DATA { <s> <p> 1 }", "DELETE WHERE { ?s ?p ?o }"]), min_size=1))
def test_an_update_with_a_dataset_stays_an_update(operations: list[str]) -> None:
    using = add_dataset(" ; ".join(operations), [G], [H])
    pyoxigraph.Store().update(using, base_iri=EX)
    assert using.count("USING NAMED") == sum("WHERE" in operation for operation in operations)
