"""A cross-encoder that a test makes: its score is the sum of the weights of the words of a passage and its question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"


def write_cross_encoder(folder: Path, weights: Mapping[str, float], *, labels: int = 1) -> Path:
    """Write the files of the model to `folder`: padding would count, so the attention mask must be used."""
    words = {word: number for number, word in enumerate([PAD, UNKNOWN, START, END, *weights])}
    tokenizer = Tokenizer(WordLevel(words, unk_token=UNKNOWN))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single=f"{START} $A {END}",
        pair=f"{START} $A {END} $B:1 {END}:1",
        special_tokens=[(START, words[START]), (END, words[END])],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    about = {"model_max_length": 64, "pad_token": PAD, "cls_token": START, "sep_token": END, "unk_token": UNKNOWN}
    (folder / "tokenizer_config.json").write_text(json.dumps(about))
    named = {str(number): f"LABEL_{number}" for number in range(labels)}
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0, "id2label": named}))
    table = np.array([[9.0], [0.0], [0.0], [0.0], *([weight] for weight in weights.values())], dtype=np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["gathered"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["gathered", "wide"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "middle"], ["logits"], keepdims=0),
    ]
    shape = ["batch", "sequence"]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([2], dtype=np.int64), "last"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "middle"),
        ],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    return folder
