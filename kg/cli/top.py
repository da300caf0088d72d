"""``kg top``: the work of a running server in the terminal: requests, tools, queries with their age, queues, memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer

from kg.cli import output
from kg.cli.connection import find_graph, find_server
from kg.cli.output import AsJson, DataDir
from kg.errors import StoreError
from kg.text import to_single_line

State = Mapping[str, Any]

_TOOLS: Final = 15
_QUERIES: Final = 15
_MIB: Final = 1 << 20


@output.reported
def top(
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.2, max=3_600, help="Time between two looks.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and exit.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the work of a running server until Ctrl-C. Requests, tools, queries with their age, queues, memory."""
    folder = find_graph(data_dir).path
    server = find_server(folder)
    if server is None:
        raise StoreError(f"No server has {folder} open. Start one with `kg serve`.")
    with server, _screen(plain=as_json or once) as show:
        before: State | None = None
        looked = 0.0
        while True:
            now = time.monotonic()
            state = server.get_state()
            if as_json:
                output.put_json(state)
            else:
                show(render(state, before, now - looked))
            if once:
                return
            before, looked = state, now
            try:
                time.sleep(interval)
            except KeyboardInterrupt:
                return


@contextmanager
def _screen(*, plain: bool) -> Iterator[Any]:
    """Provide a function that shows lines: in place of the last ones on a terminal, else below them."""
    if plain or not sys.stdout.isatty():

        def put(lines: Sequence[str]) -> None:
            for line in (*lines, ""):
                output.put(line)

        yield put
        return
    from rich.live import Live
    from rich.text import Text

    with Live(screen=True, auto_refresh=False) as live:
        yield lambda lines: live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)


def render(state: State, before: State | None, seconds: float) -> list[str]:
    """Render a state of the server as lines. `before` is the state of some seconds ago, for rates."""
    store, index, requests = state["store"], state["index"], state["requests"]
    memory = sum(each["memory_bytes"] for each in state["processes"])
    pending = f", {index['vectors_pending']:,} vectors pending" if index["vectors_pending"] else ""
    lines = [
        f"kg {state['version']}, up {_duration(state['uptime_s'])}: generation {store['generation']:,}, "
        f"{store['quads']:,} quads, {store['bytes'] // _MIB:,} MiB; index {index['texts']:,} texts{pending}",
        f"requests: {_rate(requests['total'], before, seconds)}"
        f"{requests['total']:,} in total, {requests['failed']:,} failed, {requests['in_progress']:,} in progress",
        f"memory: {memory // _MIB:,} MiB in {len(state['processes'])} processes ("
        + ", ".join(f"{each['name']} {each['memory_bytes'] // _MIB:,}" for each in _largest(state["processes"]))
        + ")",
    ]
    busy = {kind: calls for kind, calls in state["calls"].items() if calls["running"] or calls["waiting"]}
    waits = (f"{kind} {calls['running']} running, {calls['waiting']} waiting" for kind, calls in busy.items())
    lines.append(f"calls: {'; '.join(waits) or 'none'}")
    lines += [f"problem: {to_single_line(problem, 300)}" for problem in state["problems"]]
    lines += [
        f"load: {to_single_line(load['source'], 40)} {load['done']:,}"
        f"{'' if load['total'] is None else ' of ' + format(load['total'], ',')} {to_single_line(load['doing'], 60)}"
        for load in state["loads"]
    ]
    earlier = {} if before is None else before["requests"]["tools"]
    tools = sorted(requests["tools"].items(), key=lambda item: -item[1]["calls"])[:_TOOLS]
    rows = [
        [
            name,
            f"{tool['calls']:,.0f}",
            "" if before is None else f"{(tool['calls'] - earlier.get(name, {}).get('calls', 0)) / seconds:.1f}",
            f"{tool['failed']:,.0f}",
            f"{tool.get('mean_ms', 0):,.1f}",
        ]
        for name, tool in tools
    ]
    lines += _columns(("tool", "calls", "a second", "failed", "mean ms"), rows)
    queries = state["queries"][:_QUERIES]
    rows = [
        [str(query["id"]), query["pool"], f"{query['age_s']:.1f} s", query["state"], query["lane"], query["client"]]
        for query in queries
    ]
    lines += _columns(("query", "pool", "age", "state", "place", "client"), rows)
    return lines


def _largest(processes: Sequence[State]) -> list[State]:
    """Add up the processes of each name, and get the largest three."""
    sums: dict[str, int] = {}
    for each in processes:
        sums[each["name"]] = sums.get(each["name"], 0) + each["memory_bytes"]
    ordered = sorted(sums.items(), key=lambda item: -item[1])[:3]
    return [{"name": to_single_line(name, 40), "memory_bytes": size} for name, size in ordered]


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [tuple(head), *(tuple(to_single_line(cell, 60) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        "",
        *("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines),
    ]


def _rate(now: float, before: State | None, seconds: float) -> str:
    return "" if before is None else f"{(now - before['requests']['total']) / seconds:,.1f} a second, "


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3_600)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min" if minutes else f"{int(seconds)} s"
