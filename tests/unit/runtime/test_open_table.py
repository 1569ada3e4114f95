"""tidegate.runtime.open_table: what a real gate writes down of what is open."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.gate.kit import Serving, policy_of, read_exactly, small, wait
from tidegate.journal.open_lines import SLOTS, left_lines
from tidegate.runtime import open_table
from tidegate.runtime.open_table import OpenTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.api import Lab
    from tidegate.model.event import Event


class Noted(Serving):
    """A gate whose open connections are written down; its recorder tells the table as the gate's process does."""

    def __init__(self) -> None:
        super().__init__(policy_of("1.2.3.4:443", limits=small(connections=2000)))
        self.memory = os.memfd_create("tests")
        self.table = OpenTable(self.memory)
        take, flush = self.recording.record, self.recording.flush

        def record(event: Event) -> None:
            take(event)
            if event.seen:
                self.table.ended(event.seen)

        def flushed() -> None:
            flush()
            self.table.flushed()

        self.recording.record = record  # type: ignore[method-assign]  # what the process's books do
        self.recording.flush = flushed  # type: ignore[method-assign]  # likewise
        self.on_thread(lambda: self.table.serve(self.gate, self.task))

    def left(self) -> list[dict[str, Any]]:
        """Return what would be found if it were killed now."""
        return [json.loads(line) for line in left_lines(self.memory)]

    def close(self) -> None:
        """Stop it."""
        self.stop()
        os.close(self.memory)


@pytest.fixture
def noted(lab: Lab) -> Iterator[Noted]:
    """One whose host sends back what it gets."""
    lab.origin("raw", "1.2.3.4", 443)
    found = Noted()
    yield found
    found.close()


def test_what_is_open_is_there_with_its_bytes_until_its_own_line_is(noted: Noted) -> None:
    """JRN-1: soon after it opened, as it moves, and no more once it has ended."""
    assert noted.left() == []
    first, second = noted.tunnel("1.2.3.4:443"), noted.tunnel("1.2.3.4:443")
    wait(lambda: len(noted.left()) == 2)
    one = noted.left()[0]
    assert (one["host"], one["port"], one["how"], one["reason"]) == ("1.2.3.4", 443, "tunneled", "gate-lost")
    assert (one["verdict"], one["rule"], one["status"], one["type"]) == ("allow", "1.2.3.4:443", 200, "net.connection")
    second.sendall(bytes(500))
    assert read_exactly(second, 500)
    wait(lambda: sorted(line["bytes_up"] for line in noted.left()) == [0, 500])
    first.close()
    wait(lambda: [line["bytes_up"] for line in noted.left()] == [500])
    second.close()
    wait(lambda: noted.left() == [])


def test_an_end_is_not_forgotten_before_its_line_is_in_the_log(noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-1: killed between the two it stands in the memory still."""
    tunnel = noted.tunnel("1.2.3.4:443")
    wait(lambda: len(noted.left()) == 1)
    monkeypatch.setattr(noted.recording, "flush", lambda: None)  # as a gate that did not come so far
    tunnel.close()
    wait(lambda: len(noted.recording.events) == 1)
    assert len(noted.left()) == 1
    monkeypatch.undo()


def test_slots_are_used_again_and_are_bounded(noted: Noted, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-1: more than there are slots is more than is written down; who ends makes room."""
    monkeypatch.setattr(open_table, "AFTER", 0.01)
    for _ in range(3):
        tunnels = [noted.tunnel("1.2.3.4:443") for _ in range(200)]
        wait(lambda: len(noted.left()) == 200)
        for tunnel in tunnels:
            tunnel.close()
        wait(lambda: noted.left() == [])
    many: list[socket.socket] = [noted.tunnel("1.2.3.4:443") for _ in range(SLOTS + 20)]
    wait(lambda: len(noted.left()) == SLOTS)
    for tunnel in many[:100]:
        tunnel.close()
    wait(lambda: len(noted.left()) == SLOTS - 80)
    for tunnel in many[100:]:
        tunnel.close()
    wait(lambda: noted.left() == [])
    assert noted.faults == []


def test_a_gate_with_nothing_open_does_not_look(noted: Noted) -> None:
    """DESIGN: what is idle costs nothing: no look is due once nothing changes."""
    tunnel = noted.tunnel("1.2.3.4:443")
    tunnel.close()
    wait(lambda: noted.gate.connections == 0 and noted.on_thread(lambda: noted.gate.lookout) is not None)
    assert noted.left() == []
