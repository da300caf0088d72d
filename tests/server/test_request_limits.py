"""The HTTP protocol: what an answer costs in calls of the system, and that nothing of it is lost."""

from __future__ import annotations

import asyncio

from kg.server.request_limits import JOINED_BYTES, JoinedWrites


class Recorder(asyncio.Transport):
    """A transport that notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[object] = []
        self.closing = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        """Note what would be sent."""
        self.told.append(bytes(data))

    def close(self) -> None:
        """Note the end."""
        self.closing = True
        self.told.append("closed")

    def is_closing(self) -> bool:
        """Return whether the end was noted."""
        return self.closing


def told(*written: bytes, close: bool = False) -> list[object]:
    """Return what a transport is told of some writes within one turn of the loop."""
    recorder = Recorder()

    async def write() -> None:
        joined = JoinedWrites(recorder, asyncio.get_running_loop())
        for data in written:
            joined.write(data)
        if close:
            joined.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(write())
    return recorder.told


def test_the_head_of_an_answer_goes_out_with_its_body():
    assert told(b"head", b"body") == [b"headbody"]


def test_what_is_large_is_sent_at_once():
    large = b"x" * JOINED_BYTES
    assert told(b"head", large, b"more", b"end") == [b"head" + large, b"moreend"]


def test_what_is_held_is_sent_before_the_end_and_nothing_after_it():
    assert told(b"head", b"body", close=True) == [b"headbody", "closed"]
