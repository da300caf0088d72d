"""A stand-in for a chat endpoint, on loopback: it answers as a script says, and keeps what it was asked."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Said:
    """One answer: `body` as JSON, or bytes as they are."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


def completion(text: Any, finish: str | None = "stop", tokens: tuple[int, int] = (100, 20)) -> Said:
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return Said(
        {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}], "usage": usage}
    )


def summarize(body: dict[str, Any]) -> Said:
    """Answer as a good model would: a sentence with the name of the section."""
    given = body["messages"][1]["content"].split("\n")
    return completion(f"This part is about {re.sub('[^a-zA-Z ]', '', given[1]).strip().lower()}. It holds a rule.")


class StandIn:
    """`script` are the first answers; then `answer` is asked."""

    def __init__(self, *script: Said, answer: Callable[[dict[str, Any]], Said] = summarize) -> None:
        self.script = list(script)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        lock = threading.Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    stand_in.asked.append(body)
                    stand_in.headers.append(dict(self.headers))
                    stand_in._at_once += 1
                    stand_in.most_at_once = max(stand_in.most_at_once, stand_in._at_once)
                    said = stand_in.script.pop(0) if stand_in.script else None
                said = said or answer(body)
                if said.delay_s:
                    time.sleep(said.delay_s)
                content = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                with lock:
                    stand_in._at_once -= 1
                try:
                    self.send_response(said.status)
                    for name, value in {"Content-Length": str(len(content)), **said.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    pass  # whoever asked has gone

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
