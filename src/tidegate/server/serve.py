"""The server: one process with the gate of all tasks, the questions, the action log, the front door and the API.

The main thread runs asyncio; the gate has a thread of its own (gate_thread.py). What a server that was killed left
is put right at the start (HLD-8): its tasks of `run` have ended with it and are marked so, created ones live on, and
those of `run` in containers are expected back (returning.py).
The order of `stop` is the promise: nobody new, open questions refused, commands told and ended, connections closed
and recorded, then the store and the log.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tidegate import __version__
from tidegate.journal.actions import ActionLog
from tidegate.model.errors import TidegateError, told_of_bug
from tidegate.model.host import bracketed
from tidegate.model.question import Answer
from tidegate.questions.shell import Desk
from tidegate.runtime.answers import AnswerBook
from tidegate.runtime.pulse import Pulse
from tidegate.runtime.state import FRONT_SOCKET, key_folder, log_folder, make_private_folder
from tidegate.server.background import in_thread, start
from tidegate.server.bus import Bus
from tidegate.server.front_door import FrontDoor
from tidegate.server.gate_thread import GateThread
from tidegate.server.ledger import Ledger
from tidegate.server.place import Place
from tidegate.server.presence import Presence
from tidegate.server.returning import may_return
from tidegate.server.shapes import question_shape, rule_shape
from tidegate.server.sinks import Sinks
from tidegate.server.tasks import Registry
from tidegate.server.terminals import Terminals
from tidegate.server.user_table import UserTable
from tidegate.state.sqlite import open_store
from tidegate.state.store import TaskEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from tidegate.gate.identity import Stranger
    from tidegate.model.question import AnswerRecord, Question, Terms
    from tidegate.model.reason import Reason
    from tidegate.questions.values import QuestionEvent
    from tidegate.server.reach import Reach, Ways
    from tidegate.state.settings import Settings
    from tidegate.state.store import RuleRecord, Store

STOPPING = "the server is stopping"
LOST = "the server it ran behind ended without a word"
_LONGEST_SLEEP = 1.0  # seconds between looks at the questions' clocks


class Server:
    """See the head of the file. `warn` gets lines for whoever runs it; `tools` are offered to created tasks.

    Raises:
        StartError: from `start`, when it cannot serve; nothing is left behind then.
    """

    def __init__(
        self, state: str, *, environ: Mapping[str, str], warn: Callable[[str], None], tools: tuple[str, ...] = ()
    ) -> None:
        self.state = state
        self.version = __version__
        self.pid = os.getpid()
        self.started = self.wall()
        self.bus = Bus(os.urandom(4).hex())
        self.presence = Presence(clock=self.clock)
        self.api_port = 0
        self._environ = environ
        self._warn = warn
        self._tools = tools
        self.place = Place(state)
        self.ways: Ways | None = None  # notifications, webhook
        self.sinks = Sinks(state, wall=self.wall, warn=warn)
        self._ended = asyncio.Event()
        self._status = 0
        self._stopped = False
        self._clockwork: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._counted: set[int] = set()  # questions that count as open
        self._door: FrontDoor | None = None
        self._users: UserTable | None = None
        self.store: Store
        self.log: ActionLog
        self.answers: AnswerBook
        self.desk: Desk
        self.gate: GateThread
        self.ledger: Ledger
        self.registry: Registry
        self.settings: Settings

    @staticmethod
    def wall() -> float:
        """Return Unix time in seconds."""
        return time.time()  # noqa: TID251  the clock comes in here

    @staticmethod
    def clock() -> float:
        """Return monotonic time in seconds."""
        return time.monotonic()

    # Start and end.

    async def start(self) -> None:
        """Claim the state folder and serve the fronts."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._broken)
        self.place.claim()
        try:
            await self._open()
        except BaseException:
            await self.stop()
            raise

    async def _open(self) -> None:
        log, keys = log_folder(self.state), key_folder(self.state)
        make_private_folder(log)
        make_private_folder(keys)
        self.store = open_store(self.state)
        self.settings = self.store.settings()
        self.store.reserve_numbers()  # questions are opened on the gate's thread, which all tasks share
        self.log = ActionLog(log, keys, clock=self.wall, warn=self._warn)
        self.answers = AnswerBook(self.store, self.log, log, warn=self._warn)
        self.desk = Desk(
            clock=self.clock,
            wall=self.wall,
            save=self._save,
            release=self._release,
            cut=self._cut,
            tell=self._question,
            present=self._present,
            new_id=self.store.next_question_id,
        )
        self._pulse = Pulse(self.state)
        self.terminals = Terminals(self.desk.questions, self.answer)
        self.gate = GateThread(
            asker=self.desk,
            protected_ports=frozenset(),
            fault=lambda error: self._warn(f"a connection was closed by a bug: {told_of_bug(error)}"),
            lost=lambda: self.ledger.on_loop(self._gate_lost),
            stranger=self._stranger,
            pulse=self._pulse.beat,
            stalled=self._stalled,
        )
        self.ledger = Ledger(
            store=self.store,
            log=self.log,
            desk=self.desk,
            bus=self.bus,
            environ=self._environ,
            settings=lambda: self.settings,
            clock=self.wall,
            pid=self.pid,
            loop=self._loop,
        )
        self.registry = Registry(self.state, self.gate, self.ledger, clock=self.wall)
        self.registry.tools = self._tools
        self.bus.bind(self._loop)
        self.gate.start()
        self.log.append("server.started", version=self.version, pid=self.pid)
        await in_thread(self.sinks.start)
        await in_thread(self.answers.put_right)
        await self._put_right()
        self._users = UserTable(self.state, self._loop, self.wall, self.log.append)
        await self._users.open()
        self._clockwork = start(self._watch_clocks(), "the questions' clock")
        self._door = FrontDoor(self.registry, self.terminals, self.place.listen(FRONT_SOCKET))
        self._door.open()

    def announce(self, api_port: int = 0) -> None:
        """Let others find the server; `api_port` is where the API listens on loopback, 0 for nowhere."""
        self.api_port = api_port
        self.place.publish(
            {"pid": self.pid, "version": self.version, "api_port": api_port or None, "started": self.started}
        )
        self.bus.publish("server", {"state": "serving", "version": self.version, "started": self.started})

    async def _put_right(self) -> None:
        # HLD-8: what a server that was killed left.
        left = await in_thread(lambda: self.store.tasks(living=True, limit=1 << 30))
        lost = [TaskEnd(record.id, self.wall(), LOST) for record in left if not may_return(record)]
        await in_thread(self.store.end_tasks, lost)
        for end in lost:
            self.log.append("task.ended", end.id, outcome=LOST)
        for record in filter(may_return, left):
            try:
                await self.registry.revive(record)
            except (TidegateError, ValueError, KeyError, TypeError, IndexError) as error:
                self._warn(f"the task {record.id} cannot go on and has ended: {error}")
                await in_thread(self.store.end_task, record.id, self.wall(), f"could not go on: {error}")
                self.log.append("task.ended", record.id, outcome="could not go on")

    async def run(self) -> int:
        """Serve until `request_stop` or until the gate is lost; return the exit status."""
        await self._ended.wait()
        return self._status

    def request_stop(self) -> None:
        """Let `run` return. On the loop's thread."""
        self._ended.set()

    def _gate_lost(self) -> None:
        # HLD-7: without its gate nothing here is worth anything; the fronts see the end and say so.
        self._warn("the gate's thread has ended; the server ends")
        self._status = 70
        self._ended.set()

    def _stranger(self, who: Stranger, count: int) -> None:
        # On the gate's thread. GAT-2: it is in no task's journal, because no task did it.
        self.log.append("peer.refused", who.task, uid=who.uid, reason=who.reason.word, count=count)

    def _stalled(self, seconds: float) -> None:
        # On the gate's thread, once it goes on.
        self.log.append("server.stalled", seconds=round(seconds, 1))

    async def stop(self) -> None:
        """End everything, in the order that the head of the file names; later calls do nothing."""
        if self._stopped:
            return
        self._stopped = True
        if self._door is not None:
            self._door.close()
        if hasattr(self, "desk"):
            self.desk.stop()
        if hasattr(self, "registry") and self._status == 0:
            await self.registry.stop(STOPPING)
        if self._door is not None:
            await self._door.part()
        if self._users is not None:
            self._users.close()
        if self._clockwork is not None:
            self._clockwork.cancel()
        if self.ways is not None:
            self.ways.close()
        if hasattr(self, "gate"):
            await in_thread(self.gate.stop)
            self._pulse.close()
        await in_thread(self.sinks.stop)
        if hasattr(self, "log"):
            self.log.append("server.stopped", pid=self.pid)
            self.log.close()
        if hasattr(self, "store"):
            if hasattr(self, "ledger"):
                await in_thread(self.ledger.keep_ends)
            self.store.close()
        self.place.release()

    def _broken(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        told = told_of_bug(error) if isinstance(error, BaseException) else "no exception"
        self._warn(f"a bug of tidegate: {context.get('message')}: {told}")

    # What changes while it runs.

    def protect(self, ports: Iterable[int]) -> None:
        """Let no task reach these TCP ports of this machine (ADR-1)."""
        found = frozenset(ports)
        self.gate.post(lambda: self.gate.gate.protect(found))

    def settings_changed(self, settings: Settings, by: str = "") -> None:
        """The settings in force are these from now on."""
        from tidegate.state.settings import shown

        self.settings = settings
        if self.ways is not None:
            self.ways.apply(settings)
        said: dict[str, Any] = shown(settings)
        self.log.append("settings.changed", by=by, **said)
        self.bus.publish("settings", said | self.ways_shown())

    def ways_shown(self) -> dict[str, Any]:
        """Return of the webhook whether there is a key, and which settings the command line holds."""
        ways = self.ways
        return {"webhook_key_set": ways is not None and ways.key_set, "fixed": list(ways.fixed) if ways else []}

    # Questions.

    async def answer(self, number: int, answer: Answer, terms: Terms, by: str) -> Question:
        """Answer a question: on the disk first, then those who wait go on.

        Raises:
            NoSuchQuestionError, AlreadyAnsweredError, BadAnswerError, NotSavedError: see Desk.answer.
        """
        question = await in_thread(self.desk.answer, number, answer, terms, by)
        if answer is Answer.REMEMBER:
            task = self.registry.find(question.task)
            if task is not None:
                await self.registry.remember(task.folder, by=by)
        return question

    async def forget(self, rule: int, by: str) -> RuleRecord | None:
        """Forget a remembered host; its folder's living tasks ask again. None where there is no such rule."""
        record = await in_thread(self.store.forget, rule)
        if record is not None:
            self.desk.forget_rule(record.folder, record.host, record.port, record.phase)
            await self.registry.remember(record.folder, by=by)
            host = f"{bracketed(record.host)}:{record.port}"
            self.log.append("rule.forgotten", rule=rule, folder=record.folder.path, host=host, by=by)
            self.bus.publish("rule", rule_shape(record) | {"forgotten": True})
        return record

    def _save(self, record: AnswerRecord) -> None:
        # In whatever thread answers.
        rule = self.answers.save(record)
        if rule is not None:
            self.bus.publish("rule", rule_shape(rule))

    def _question(self, event: QuestionEvent) -> None:
        # On any thread, and never waits.
        self.ledger.on_loop(lambda: self._on_question(event))

    def _on_question(self, event: QuestionEvent) -> None:
        question = event.question
        counts = self.ledger.questions
        if event.kind == "opened":
            start(in_thread(self._reserve), "numbers for questions")
            self._counted.add(question.id)
            counts[question.task] = counts.get(question.task, 0) + 1
            self.log.append(
                "question.opened", question.task, question=question.id, host=str(question.decision.destination)
            )
        elif event.kind in ("answered", "expired", "ended"):
            if question.id in self._counted:  # not one that expired before it was answered
                self._counted.discard(question.id)
                counts[question.task] = max(0, counts.get(question.task, 0) - 1)
            if event.kind != "answered":
                self.log.append(f"question.{event.kind}", question.task, question=question.id)
        self._asked.set()
        self.terminals.tell(question)
        shape = question_shape(question, self._name(question.task))
        self.bus.publish("question", shape)
        for other in self._others():
            other.tell(event.kind, shape)

    def _reserve(self) -> None:
        with suppress(TidegateError):  # with the next question, then
            self.store.reserve_numbers()

    def _name(self, task: str) -> str:
        found = self.registry.find(task)
        return found.name if found is not None else ""

    def _present(self, task: str) -> bool:
        # On any thread: whether somebody could answer (ASK-4).
        here = self.presence.present(task) or self.terminals.present(task)
        return here or any(other.present() for other in self._others())

    def _others(self) -> tuple[Reach, ...]:
        return self.ways.all() if self.ways is not None else ()

    def _release(self, callback: Callable[[], None]) -> None:
        self.gate.post(callback)

    def _cut(self, task: str, host: str, port: int, reason: Reason) -> None:
        def cut() -> None:
            self.registry.cut_now(task, host, port, reason)

        self.gate.post(cut)

    async def _watch_clocks(self) -> None:
        while True:
            self._asked.clear()
            due = self.desk.next_due()
            try:
                async with asyncio.timeout(None if due is None else min(max(due, 0.0), _LONGEST_SLEEP)):
                    await self._asked.wait()
            except TimeoutError:
                self.desk.tick()  # here, and not in a thread: a deadline does not wait for a slow disk
