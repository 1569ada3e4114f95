"""The front: the process the user's shell knows. Terminal, signals, watchdog, exit status; one poll loop.

It watches the gate (end of file: the task has no route any more and is ended, exit 70), init (what the command does),
the signals sent to itself (passed on), and moves bytes between the real terminal or sockets and the task's pty or
pipes. It is what a shell must believe to be the command: it stops when the command stops, continues it when it is
continued, ends as it ended.

Rules of the file: nothing waits but poll; nothing that the task, the gate, the terminal or a reader of ours does
raises out of `run`; every way out puts the terminal's modes back. Which stop or continue leads where is the table in
jobs.py. `terminal` and `relay` are imported only where there is something to relay.
"""

from __future__ import annotations

import os
import select
from time import monotonic

from tidegate.holds import control
from tidegate.holds.stdio import close_task_ends, let_go_of_pipes
from tidegate.model.errors import EXIT_CANNOT_START
from tidegate.runtime.children import end_child, exit_status, is_in_state, is_lost, see_off
from tidegate.runtime.grace import Due, Grace
from tidegate.runtime.jobs import Action, Happening, Mode, react
from tidegate.runtime.outcome import GATE_GONE, WATCHER_GONE, Outcome, ended, not_executed, say
from tidegate.runtime.signals import SignalInbox, from_keyboard, stop_by
from tidegate.runtime.ways import Ways

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable

    from tidegate.holds.hold import RunningTask
    from tidegate.holds.stdio import StdioPlan
    from tidegate.runtime.ask_screen import AskScreen
    from tidegate.runtime.comeback import Comeback
    from tidegate.runtime.relay import Channel
    from tidegate.runtime.server_sign import ServerSign
    from tidegate.runtime.terminal import Terminal
else:
    import _signal  # signal itself makes enums at each start

_HUNG_UP = select.POLLHUP | select.POLLERR | select.POLLNVAL
_READABLE = select.POLLIN | _HUNG_UP
_ENDS = frozenset({_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP})
_WANTS_TERMINAL = frozenset({_signal.SIGTTIN, _signal.SIGTTOU})


class Front:
    """One run of a launched task, from `start` to its outcome.

    `gate_fd` is a descriptor whose end of file means that the gate is gone, None where the hold has none; what comes
    on it goes to `on_gate_message`, which says why the task must end, or ''. A `gate_pid` is our child: one that was
    stopped counts as gone. `gone` is what is said then, '' where the task has nothing to lose by it. `last` says that
    nobody comes after this command who needs our standard streams. `asking` puts questions to who is at the terminal.
    `server` tells whether the one whose gate it is goes on, `comeback` is for a task that need not end with it; `note`
    has the gate record an event.
    """

    def __init__(
        self,
        task: RunningTask,
        stdio: StdioPlan,
        *,
        gate_fd: int | None,
        gate_pid: int = 0,
        inbox: SignalInbox | None = None,
        last: bool = True,
        on_gate_message: Callable[[bytes], str] | None = None,
        gone: str = GATE_GONE,
        asking: AskScreen | None = None,
        comeback: Comeback | None = None,
        server: ServerSign | None = None,
        note: Callable[[str], None] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._task = task
        self._stdio = stdio
        self._ways = Ways(gate_fd, on_gate_message, gone, task.way, comeback, task.life, note, server)
        self._ways.tell = self._say
        self._gate_pid = gate_pid
        self._inbox = inbox if inbox is not None else SignalInbox.install()
        self._asking = asking
        self._clock = clock
        self._last = last
        self._poll = select.poll()
        self._watched: dict[int, int] = {}
        self._mode = Mode.AWAY
        self._terminal: Terminal | None = None
        self._master = -1 if task.pty_master is None else task.pty_master
        self._keyboard: Channel | None = None
        self._inward: list[Channel] = []
        self._outward: list[Channel] = []
        self._control_open = True
        self._outcome: Outcome | None = None
        self._gate_lost = False
        self._typed = False
        self._begun = False
        self._grace = Grace()

    def run(self) -> Outcome:
        """Start the command, see it through to its end, and return how that was."""
        if number := self._inbox.pending_end():  # asked to end before it began
            self._task.kill()
            see_off(self._task)
            return Outcome(128 + number, number, started=False)
        try:
            self._begin()
            while not self._over():
                self._turn()
        finally:
            self._leave_questions()
            if self._terminal is not None:
                self._terminal.leave()
            if self._control_open:
                self._task.kill()
            self._ways.close()
            see_off(self._task)
            if self._master >= 0:
                os.close(self._master)
        if self._outcome is None:
            if self._task.last_words and not self._gate_lost:
                self._gate_lost = True
                say(self._task.last_words)
            # Init went without a word: it was killed, and the kernel has killed the rest with it.
            return ended(_signal.SIGKILL, gate_lost=self._gate_lost, init_lost=not self._grace.forced)
        return self._outcome

    # --- setting up and winding down

    def _begin(self) -> None:
        close_task_ends(self._stdio)
        os.set_blocking(self._task.control, False)  # an init that does not listen must not hold us up
        if self._last:
            let_go_of_pipes(self._stdio)
        if self._stdio.relays or self._master >= 0:
            self._make_channels()
        if self._stdio.starts_in_foreground and self._terminal is not None and self._terminal.in_foreground():
            self._terminal.enter()
            self._mode = Mode.HERE
        self._listen_to_keyboard()
        self._send("start" if self._mode is Mode.HERE else "start bg")

    def _make_channels(self) -> None:
        from tidegate.runtime.relay import Channel

        for relay in self._stdio.relays:
            if relay.inward:
                self._inward.append(Channel(relay.outside, relay.pipe, close_sink=True))
            else:
                self._outward.append(Channel(relay.pipe, relay.outside, close_source=True))
        if self._master >= 0 and self._stdio.terminal is not None:
            from tidegate.runtime.terminal import Terminal

            # We write to the terminal from the background too, and find out about reading by EIO instead of being
            # stopped.
            for number in _WANTS_TERMINAL:
                _signal.signal(number, _signal.SIG_IGN)
            os.set_blocking(self._master, False)
            self._terminal = Terminal(self._stdio.terminal, self._master)
            self._keyboard = Channel(self._terminal.fd, self._master, transform=self._typing)
            output = Channel(self._master, self._terminal.fd, transform=self._terminal.output)
            self._outward.append(output)
            if self._asking is not None:
                self._asking.attach(self._terminal, output)

    def _over(self) -> bool:
        if self._control_open:
            return False
        now = self._clock()
        self._grace.drain(now)
        return all(channel.done for channel in self._outward) or self._grace.drained_enough(now)

    # --- the loop

    def _turn(self) -> None:
        self._watch()
        patience = self._grace.patience(self._clock())
        if self._asking is not None and (soon := self._asking.patience()) is not None:
            patience = soon if patience is None else min(soon, patience)
        if (look := self._ways.patience()) is not None:
            patience = look if patience is None else min(look, patience)
        ready = dict(self._poll.poll(None if patience is None else patience * 1000 + 1))
        if self._inbox.fd in ready:
            for number in self._inbox.take():
                self._on_signal(number)
        if self._task.control in ready and self._control_open:
            self._hear_init()
        why = self._ways.look(ready) or self._ways.attend(self._clock())
        if why and self._outcome is None and self._control_open:
            self._lose(why)
        for channel in [*self._outward, *self._inward]:
            if channel.move(ready):
                self._grace.moved(self._clock())
        if self._terminal is not None and self._keyboard is not None:
            self._attend_terminal(self._terminal, self._keyboard, ready)
        if self._asking is not None and self._control_open:
            self._attend_questions(self._asking, ready)
        self._look_at_clock()

    def _watch(self) -> None:
        init = self._task.control if self._control_open else -1
        masks = {fd: select.POLLIN for fd in (self._inbox.fd, init, *self._ways.watched()) if fd >= 0}
        channels = [*self._outward, *self._inward]
        if self._terminal is not None and self._keyboard is not None and not self._terminal.gone:
            masks[self._terminal.fd] = 0  # a hang-up is reported whatever is asked for
            channels.append(self._keyboard)
        for channel in channels:
            channel.watch(masks)
        if self._asking is not None:
            self._asking.watch(masks)
        for fd in self._watched.keys() - masks.keys():
            self._poll.unregister(fd)
        for fd, mask in masks.items():
            if self._watched.get(fd) != mask:
                self._poll.register(fd, mask)
        self._watched = masks

    def _look_at_clock(self) -> None:
        due = self._grace.due(self._clock())
        if due is Due.KILL:
            self._send(f"signal {_signal.SIGKILL}")
        elif due is Due.HARD_KILL:
            self._task.kill()

    # --- init and the gate

    def _send(self, message: str) -> None:
        try:
            control.send(self._task.control, message)
        except OSError:
            return  # init has ended; its last words are still to be read

    def _hear_init(self) -> None:
        try:
            received = control.receive(self._task.control)
        except BlockingIOError:
            return
        except OSError:
            received = None
        if received is None:
            self._control_open = False
            self._leave_questions()
            return
        words = received[0].split(" ")
        self._begun = self._begun or words[0] == "started"
        self._listen_to_keyboard()
        if words[0] == "stopped":
            self._on_stopped(int(words[1]))
        elif words[0] == "exited":
            self._outcome = ended(int(words[1]), gate_lost=self._gate_lost, typed=self._typed)
        elif words[0] == "execfailed":
            self._outcome = not_executed(int(words[1]), words[2])
        elif words[0] == "failed":
            self._outcome = Outcome(EXIT_CANNOT_START, started=False, exec_errno=int(words[2]), exec_kind="cannot")

    def _lose(self, sentence: str) -> None:
        """A part that holds the task's way out is gone: say so once, and end the task."""
        if self._gate_lost:
            return
        self._gate_lost = True
        self._leave_questions()
        self._say(sentence)
        self._send(f"signal {_signal.SIGTERM}")
        self._send(f"signal {_signal.SIGCONT}")  # a stopped command cannot end
        self._grace.gate_lost(self._clock())

    def _say(self, sentence: str) -> None:
        say(sentence, raw=self._terminal is not None and self._terminal.entered)

    def _look_at_children(self) -> None:
        """End a gate or a watcher that was stopped, since calls would hang; see a watcher's end (it has no channel)."""
        if self._gate_pid and is_in_state(self._gate_pid, os.WSTOPPED):
            end_child(self._gate_pid)
        if self._task.watcher and is_lost(self._task.watcher):
            self._lose(self._task.said.get(exit_status(self._task.watcher), WATCHER_GONE))
            end_child(self._task.watcher)

    # --- signals and job control

    def _on_signal(self, number: int) -> None:
        if number == _signal.SIGCHLD:
            self._look_at_children()
        elif number == _signal.SIGCONT:
            self._act(Happening.RESUMED_FRONT if self._in_foreground() else Happening.RESUMED_BACK)
        elif number == _signal.SIGWINCH:
            if self._terminal is not None and self._terminal.pass_size_on() and self._mode is not Mode.HERE:
                self._send(f"signal {number}")  # the kernel tells only the foreground of the pty
            if self._asking is not None:
                self._asking.resized()
        else:
            keyboard = number == _signal.SIGINT and self._mode is not Mode.HERE and from_keyboard()
            self._send(f"signal {number}")
            if number in _ENDS and not keyboard and not (number == _signal.SIGHUP and self._terminal is None):
                self._grace.asked(self._clock())  # not where it is Ctrl-C: that is the command's affair

    def _on_stopped(self, number: int) -> None:
        if number in _WANTS_TERMINAL and self._terminal is not None:
            self._act(Happening.WANTS_IT_FRONT if self._in_foreground() else Happening.WANTS_IT_BACK, number)
        else:
            self._act(Happening.TYPED_STOP if number == _signal.SIGTSTP else Happening.STOPPED, number)

    def _act(self, happening: Happening, number: int = 0) -> None:
        if self._asking is not None:
            self._asking.hide()  # what comes next is about the terminal as it was before
        actions, self._mode = react(self._mode, happening)
        stops = Action.STOP_SELF in actions or Action.STOP_GROUP in actions
        if stops:
            for channel in self._outward:  # what the command wrote before it stopped is shown before we stop
                if channel.source == self._master:
                    channel.settle()
        for action in actions:
            if action is Action.CONTINUE_FRONT:
                self._send("continue fg")
            elif action is Action.CONTINUE_BACK:
                self._send("continue bg")
            elif action is Action.NO_INPUT and self._keyboard is not None:
                self._keyboard.feed(b"\x04")
            elif self._terminal is not None and action is Action.ENTER:
                self._terminal.enter()
                self._terminal.pass_size_on()
            elif self._terminal is not None and action is Action.LEAVE:
                self._terminal.leave()
        self._listen_to_keyboard()
        if stops:
            self._stop(number, group=Action.STOP_GROUP in actions)

    def _stop(self, number: int, *, group: bool) -> None:
        stop_by(number, group=group)
        arrived = self._inbox.take()
        if _signal.SIGCONT not in arrived and not self._in_foreground():
            self._act(Happening.REFUSED)
        else:
            self._act(Happening.RESUMED_FRONT if self._in_foreground() else Happening.RESUMED_BACK)
        for other in arrived:
            if other != _signal.SIGCONT:
                self._on_signal(other)

    def _in_foreground(self) -> bool:
        return self._terminal is not None and self._terminal.in_foreground()

    # --- the terminal

    def _listen_to_keyboard(self) -> None:
        if self._keyboard is not None:
            asked = self._asking is not None and self._asking.up  # and before it is in front, Ctrl-C would reach nobody
            self._keyboard.paused = asked or self._mode is not Mode.HERE or not self._begun

    def _typing(self, data: bytes) -> bytes:
        if self._terminal is not None and self._terminal.holds_interrupt(data):
            self._typed = True
        if self._asking is not None:
            self._asking.typed(data)
        return data

    def _attend_questions(self, asking: AskScreen, ready: dict[int, int]) -> None:
        key = asking.attend(ready)
        if key:
            asking.put_off()
        self._listen_to_keyboard()
        if key and self._mode is Mode.HERE and self._keyboard is not None:
            self._typed = self._typed or key == "\x03"
            self._keyboard.feed(key.encode())
        elif key:  # what the real terminal would have done, were it not raw for the question
            os.kill(0, _signal.SIGINT if key == "\x03" else _signal.SIGTSTP)

    def _leave_questions(self) -> None:
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.detach()
            self._listen_to_keyboard()

    def _attend_terminal(self, terminal: Terminal, keyboard: Channel, ready: dict[int, int]) -> None:
        if terminal.gone:
            return
        if keyboard.wants_write and ready.get(self._master, 0) & select.POLLOUT:
            keyboard.write()
        events = ready.get(terminal.fd, 0)
        if keyboard.wants_read and events & _READABLE:
            keyboard.read()
        if events & _HUNG_UP or (keyboard.ended and terminal.in_foreground()):
            self._terminal_is_gone(terminal, keyboard)
        elif keyboard.ended:
            keyboard.ended = False
            self._act(Happening.LOST)

    def _terminal_is_gone(self, terminal: Terminal, keyboard: Channel) -> None:
        """Hang the task's pty up as the real terminal was: reads end, writes fail. SIGHUP is another matter."""
        terminal.gone = True
        if self._asking is not None:
            self._asking.gone()
        self._mode = Mode.AWAY
        keyboard.abort()
        for channel in self._outward:
            if channel.source == self._master:
                channel.abort()
        os.close(self._master)
        self._master = -1
