"""The multilingual model is the pinned one, and its vectors are the same however texts are batched or hyphenated."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kg.errors import ModelError
from kg.search import sentence_encoder
from kg.search.embedding import Embedder, open_embedder
from kg.search.registry import MINILM, USE, get_languages
from kg.search.sentence_encoder import KNOWN_SENTENCES
from kg.settings import Settings

WELLS = "Geothermal wells deeper than 400 metres need a licence from the Ministry of Energy."
BRUNNEN = "Für Erdwärmebohrungen tiefer als 400 Meter ist eine Genehmigung des Energieministeriums nötig."
BOOTE = "Boote, die im Schutzgebiet fischen, verlieren ihre Lizenz für zwei Jahre."


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return open_embedder(Settings(_env_file=None), USE)


def test_known_sentences_have_their_known_vectors() -> None:
    assert sentence_encoder.find_damage() == []
    assert sentence_encoder.compute_similarity() > 0.99999


def test_translations_are_near(embedder: Embedder) -> None:
    wells, boats = (rows[0] for rows in embedder.embed_documents([BRUNNEN, BOOTE]))
    query = embedder.embed_query(WELLS)
    assert float(query @ wells) > float(query @ boats) + 0.3


def test_a_vector_depends_on_its_text_alone(embedder: Embedder) -> None:
    """Repeats are equal by the bit; in other batches and threads they differ by rounding."""
    texts = [*KNOWN_SENTENCES, *(f"{WELLS} {number}" for number in range(100))]
    together = embedder.embed_documents(texts)
    again = embedder.embed_documents(texts)
    assert all(np.array_equal(one, other) for one, other in zip(together, again, strict=True))
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(embedder.embed_query, texts))
    np.testing.assert_allclose(np.stack(alone), np.concatenate(together), atol=1e-6)


def test_invisible_characters_and_ligatures_change_nothing(embedder: Embedder) -> None:
    broken = WELLS.replace("Geothermal", "Geo\u00adther\u200bmal").replace("deeper", "\ufeffdeeper") + "\u2060"
    assert np.array_equal(embedder.embed_query(broken), embedder.embed_query(WELLS))
    assert np.array_equal(embedder.embed_query("the ﬁrst ﬂat"), embedder.embed_query("the first flat"))


def test_tokens_are_those_of_sentencepiece() -> None:
    """Adjacent unknown characters are one token, and composed characters are as good as precomposed ones."""
    encoder = sentence_encoder.SentenceEncoder()
    assert encoder.encode("𐎠𐎡𐎢") == encoder.encode("𐎠")
    assert encoder.encode("") == [1, 0, 2]
    for text in (*KNOWN_SENTENCES, "ﾊﾞﾝ"):
        assert encoder.encode(unicodedata.normalize("NFD", text)) == encoder.encode(text)


@pytest.mark.parametrize("text", ["x" * 200_000, "地" * 50_000, "b\u0301" * 50_000], ids=["latin", "han", "accents"])
def test_a_word_of_any_length_is_embedded(embedder: Embedder, text: str) -> None:
    (rows,) = embedder.embed_documents([text])
    assert np.isfinite(rows).all()


def test_changed_weights_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sp.model").write_bytes(b"other")
    monkeypatch.setattr(sentence_encoder, "get_folder", lambda: tmp_path)
    with pytest.raises(ModelError, match=r"sp\.model .* is not the pinned one.* weights\.npz is missing"):
        sentence_encoder.SentenceEncoder()


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        (f"{MINILM}/int8", {"en"}),
        (f"models.example.org/{MINILM}", {"en"}),
        (
            f"{USE}/6bit",
            {"ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"},
        ),
        ("jinaai/jina-embeddings-v2-base-es", {"en", "es"}),
        ("BAAI/bge-small-en-v1.5", {"en"}),
        ("intfloat/multilingual-e5-large", None),
        ("models.example.org/some-model", None),
    ],
)
def test_languages_of_a_model_or_embedder(name: str, languages: set[str] | None) -> None:
    assert get_languages(name) == languages
