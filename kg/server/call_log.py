"""One log line for each call of a tool: a JSON object with its arguments, outcome, steps, size and time.

Arguments are shortened. Secrets, and texts that a caller sent to be stored, are left out, since the log has other
readers than the caller.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Mapping, Sized
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from kg.access.actors import Actor
from kg.access.audit import ENTRY, AuditLog, Entry
from kg.knowledge_graph import SENDER
from kg.observability import OK, observe_call, outcome_of
from kg.text import to_single_line
from kg.tools.answers import Answer
from kg.tools.arguments import TEXTS_TO_STORE

log = logging.getLogger("kg.calls")

REQUEST_ID: Final[ContextVar[str]] = ContextVar("request_id", default="")
"""Identifies the request of the current call in logs; set by the server."""

SHOWN_CHARACTERS: Final = 120
SHOWN_ELEMENTS: Final = 10
_SECRET: Final = re.compile(r"token|password|passwd|secret|api_?key|authorization|credential", re.IGNORECASE)
_INLINE: Final = re.compile(
    r"(?i)\b(bearer\s+|(?:token|password|passwd|secret|api[_-]?key)\s*[=:]\s*)\S+|\b(?:sk|ghp|hf)[_-]\w{16,}"
    r"|(?<![\w-])(?:qc_[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*)"
)
"""Secrets in texts: what follows their names, keys of common services, our tokens, JSON Web Tokens."""
_REQUEST_ID: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
CLI: Final = "cli"
"""The transport of a command in its own process, which has no log of calls."""


def find_request_id(headers: Mapping[str, str]) -> str:
    """Get the id that a proxy gave the request (``X-Request-Id``), or make one."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex[:16]


class CallLog:
    """Logs one call, the block of its ``with`` statement, and records it in `audit`. Set `answer` to log its size.

    Raises AuditUnavailableError before or after the block if the audit log is required and cannot be written.
    """

    def __init__(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        transport: str,
        audit: AuditLog | None = None,
        sender: Actor | None = None,
    ) -> None:
        self.request_id: Final = REQUEST_ID.get() or uuid.uuid4().hex[:16]
        self.answer: Answer | None = None
        self._tool, self._arguments, self._transport = tool, arguments, transport
        self._observed = observe_call(tool, transport)
        self._audit, self._sender = audit, sender or SENDER.get()

    def __enter__(self) -> CallLog:
        if self._audit is not None:
            self._audit.require_writable()
        self._began = time.perf_counter()
        self._steps = self._observed.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        """Log the outcome. The message of an error may quote arguments, so only its code is logged."""
        self._observed.__exit__(kind, error, traceback)  # type: ignore[arg-type]
        outcome = outcome_of(error)
        level = logging.ERROR if outcome == "internal" else logging.INFO
        arguments = redact(self._arguments)
        self._write(level, outcome, arguments, self._measure() if outcome == OK else {})
        if self._audit is not None:
            self._record(self._audit, outcome, arguments)

    def _record(self, audit: AuditLog, outcome: str, arguments: Any) -> None:
        """Write the entry of the call, in place of that of its request."""
        request = ENTRY.get()
        if request is not None:
            request.is_written = True
        audit.record(
            replace(
                request or Entry(""),
                action=self._tool if self._transport != CLI else f"kg {self._tool}",
                request_id=self.request_id,
                actor=self._sender,
                arguments=arguments,
                snapshot=None if self.answer is None else self.answer.meta.get("snapshot"),
                outcome=outcome,
                began=self._began,
            )
        )

    def _measure(self) -> dict[str, Any]:
        if self.answer is None:
            return {}
        counts = {name: len(value) for name, value in self.answer.content.items() if isinstance(value, list)}
        return {"counts": counts, **{name: self.answer.meta.get(name) for name in ("total", "tokens", "snapshot")}}

    def _write(self, level: int, outcome: str, arguments: Any, more: Mapping[str, Any]) -> None:
        if self._transport == CLI or not log.isEnabledFor(level):
            return
        fields = {
            "event": "tool_call",
            "request_id": self.request_id,
            "who": self._sender.name,
            "tool": self._tool,
            "transport": self._transport,
            "outcome": outcome,
            "ms": round((time.perf_counter() - self._began) * 1_000, 1),
            **({"steps": self._steps} if self._steps else {}),
            **more,
            "arguments": arguments,
        }
        log.log(level, "%s", _to_line(fields), extra={"fields": fields})


def redact(value: Any, name: str = "") -> Any:
    """Shorten arguments for a log, without secrets and without texts that the caller sent."""
    if _SECRET.search(name) and name != "max_tokens":
        return "[redacted]"
    if name in TEXTS_TO_STORE and isinstance(value, Sized):  # a text, or a value of a wrong type
        return f"[{len(value):,} {'characters' if isinstance(value, str) else 'entries'}]"
    if isinstance(value, str):
        text = _INLINE.sub(lambda match: f"{match[1] or ''}[redacted]", value.encode(errors="replace").decode())
        if name == "file_path":
            text = text.replace("\\", "/").rpartition("/")[2]
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… [{len(text):,} characters]"
    if isinstance(value, Mapping):
        left = {"…": f"[{len(value) - SHOWN_ELEMENTS:,} more]"} if len(value) > SHOWN_ELEMENTS else {}
        return {str(key)[:80]: redact(each, str(key)) for key, each in list(value.items())[:SHOWN_ELEMENTS]} | left
    if isinstance(value, list | tuple):
        shown = [redact(each, name) for each in value[:SHOWN_ELEMENTS]]
        return shown if len(value) <= SHOWN_ELEMENTS else [*shown, f"[{len(value) - SHOWN_ELEMENTS:,} more]"]
    return value


def _to_line(fields: Mapping[str, Any]) -> str:
    """Write one line of JSON that is safe on a terminal: JSON itself escapes few control characters."""
    line = json.dumps(fields, ensure_ascii=False, default=str)
    return to_single_line(line, len(line))


class JsonFormatter(logging.Formatter):
    """Writes each record as one line of JSON: time, level, logger, `brand`, and its fields or message."""

    def __init__(self, brand: str) -> None:
        super().__init__()
        self._brand = brand

    def format(self, record: logging.LogRecord) -> str:
        """Format `record`."""
        said: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "brand": self._brand,
        }
        fields = getattr(record, "fields", None)
        said |= fields if isinstance(fields, dict) else {"message": record.getMessage()}
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return _to_line(said)
