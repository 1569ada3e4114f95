"""One server with 10, 100 and 1,000 living tasks and five tunnels each, while 100 connections a second are refused.

At each size: memory of the server, the latency of a decision (CONNECT to the answer, refused and allowed), of
`GET /api/tasks`, of what the portal loads first, and from a refusal to whoever watches the stream of events. A bound
compares the sizes: a connection may not cost more because other tasks live. At the end, how long the server takes
to end with all of it. Each size begins with a fresh server, and sizes are interleaved over the rounds.
"""

from __future__ import annotations

import statistics
import threading
import time
from typing import TYPE_CHECKING

from bench import server
from bench.loads import DENIED, Origin
from bench.processes import BenchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.context import Context

SIZES = (10, 100, 1000)
QUICK_SIZES = (10, 100)
TUNNELS = 5  # a task
EVENTS = 100  # a second
_PEER = "tidegate"
_COSTED = 1000  # connections over which processor time, which comes in ticks of 10 ms, is taken
_ASKED = 200  # decisions of each kind for a sample
_PORTAL = ("/", "/portal.css", "/api/questions", "/api/settings")
_SPARE = 400  # descriptors beside tunnels, listeners and journals


def measure_server(context: Context) -> None:
    """Measure each size in each round."""
    most = server.raise_descriptors()
    rounds = 1 if context.quick else max(1, context.rounds // 2)
    for number in range(rounds):
        for size in QUICK_SIZES if context.quick else SIZES:
            if size * (2 * TUNNELS + 3) + _SPARE > most:
                context.failed(f"server with {size:,} tasks", f"{most} descriptors are all there are")
                continue
            context.say(f"a server with {size:,} tasks, round {number + 1} of {rounds}")
            try:
                _size(context, size)
            except (BenchError, OSError) as error:
                context.failed(f"server with {size:,} tasks", str(error))


def _size(context: Context, size: int) -> None:
    origin = Origin()
    served = server.Server(f"{context.folder}/{size}-{time.monotonic_ns()}")
    tasks: list[server.Task] = []
    try:
        served.start()
        _measured(context, size, served, tasks, origin)
        took = served.stop()
        _add(context, f"server_stop_{size}", f"server, {size:,} tasks: ended by SIGTERM", "ms", took * 1000)
    finally:
        for task in tasks:
            task.close()
        served.stop()
        origin.stop()


def _measured(context: Context, size: int, served: server.Server, tasks: list[server.Task], origin: Origin) -> None:
    target = f"127.0.0.1:{origin.ports['echo']}"
    about = f"server, {size:,} tasks"
    time.sleep(0.5)
    empty = served.footprint()
    began = time.perf_counter()
    tasks += [server.Task(served, f"bench-{number}", [target]) for number in range(size)]
    each = (time.perf_counter() - began) / size
    _add(context, f"server_begin_{size}", f"{about}: one task taken in", "ms", each * 1000)
    time.sleep(0.5)
    idle = served.footprint()
    for task in tasks:
        task.hold(target, TUNNELS)
    time.sleep(0.5)
    full = served.footprint()
    _add(context, f"server_rss_{size}", f"{about} and {size * TUNNELS:,} tunnels: memory, RSS", "MB", full.rss / 1e6)
    _add(context, f"server_task_{size}", f"{about}: memory a task", "B", (idle.pss - empty.pss) / size)
    _add(context, f"server_tunnel_{size}", f"{about}: memory a tunnel", "B", (full.pss - idle.pss) / (size * TUNNELS))
    for task in tasks:
        task.timed(DENIED)  # what only the first of a task pays is not what is compared
    before = served.cpu()
    for at in range(_COSTED):
        tasks[at * 7 % size].timed(target)
    cost = (served.cpu() - before) / _COSTED
    _add(context, f"server_cost_{size}", f"{about}: processor time a connection", "µs", cost * 1e6)
    with context.sampling(), _Events(tasks):
        for key, what, where in (("refuse", "refused", DENIED), ("allow", "let through", target)):
            figures = [tasks[at * 7 % size].timed(where) * 1e6 for at in range(_ASKED)]
            _add(context, f"server_{key}_{size}", f"{about}: a connection {what}", "µs", *_quantiles(figures))
        api = served.api()
        listed = _often(lambda: api.get("/api/tasks", living=True, limit=100), 20)
        _add(context, f"server_tasks_{size}", f"{about}: GET /api/tasks, 100 of them", "ms", *_quantiles(listed))
        portal = _often(lambda: _portal(served), 5)
        _add(context, f"server_portal_{size}", f"{about}: what the portal loads first", "ms", *_quantiles(portal))
        _add(
            context, f"server_event_{size}", f"{about}: from a refusal to the stream", "ms",
            *_quantiles(_streamed(served, tasks[0])),
        )  # fmt: skip
        before, at = served.cpu(), time.perf_counter()
        time.sleep(max(1.0, context.seconds))
        used = (served.cpu() - before) / (time.perf_counter() - at)
        _add(context, f"server_cpu_{size}", f"{about}: processor used by {EVENTS} refusals a second", "%", used * 100)


def _add(context: Context, key: str, title: str, unit: str, value: float, p95: float | None = None) -> None:
    series = context.results.measure(key, title, unit, more_is_better=False).of(_PEER)
    series.add(value, **({} if p95 is None else {"p95": p95}))


def _quantiles(figures: list[float]) -> tuple[float, float]:
    """Return the median, and what 95 of 100 are below."""
    return statistics.median(figures), sorted(figures)[int(len(figures) * 0.95)]


def _often(call: Callable[[], object], times: int) -> list[float]:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1000)
    return found


def _portal(served: server.Server) -> None:
    import http.client

    from tidegate.cli.api_client import ApiClient

    api: ApiClient = served.api()
    api.get("/api/tasks", limit=100)
    for path in _PORTAL[2:]:
        api.get(path)
    with open(f"{served.state}/run/port", encoding="ascii") as file:
        port = int(file.read())
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for path in _PORTAL[:2]:
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != http.client.OK or not answer.read():
            raise BenchError(f"the portal has no {path}: {answer.status}")
    connection.close()


def _streamed(served: server.Server, task: server.Task) -> list[float]:
    """Refuse connections to hosts of their own, and see how long after that the stream has each."""
    seen: dict[str, float] = {}
    ready = threading.Event()

    def watch() -> None:
        for _id, kind, data in served.api().events():
            ready.set()
            if kind == "connection" and data.get("host", "").startswith("seen-"):
                seen[data["host"]] = time.perf_counter()
                if len(seen) == 20:
                    return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    ready.wait(10)
    asked: dict[str, float] = {}
    for number in range(20):
        host = f"seen-{number}.test"
        asked[host] = time.perf_counter()
        task.connect(f"{host}:443")[0].close()
    watcher.join(10)
    if len(seen) < 20:
        raise BenchError(f"the stream of events had {len(seen)} of 20 refusals")
    return [(at - asked[host]) * 1000 for host, at in seen.items()]


class _Events:
    """Has `EVENTS` connections a second refused, over all tasks, while it is entered."""

    def __init__(self, tasks: list[server.Task]) -> None:
        self._tasks = tasks
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def _go(self) -> None:
        began, number = time.perf_counter(), 0
        while not self._ended.wait(max(0.0, began + number / EVENTS - time.perf_counter())):
            try:
                self._tasks[number % len(self._tasks)].refused()
            except OSError:
                return
            number += 1

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)
