"""tidegate.tools.calls: an input is looked at before anything runs, and a failure says little."""

from __future__ import annotations

import pytest

from tidegate.tools.calls import MOST_SAID, Called, call, check_and_run, ended, refused, shown
from tidegate.tools.declaration import Tool
from tidegate.tools.program import Ran
from tidegate.tools.schema import normal

TOOL = Tool(
    "t",
    ("/bin/true",),
    "",
    normal({"type": "object", "properties": {"n": {"type": "integer"}}}),
    "",
    max_input_bytes=40,
)


class Runs:
    """What ran."""

    def __init__(self) -> None:
        self.inputs: list[bytes] = []

    def __call__(self, _tool: Tool, data: bytes) -> Called:
        """Take note of a run."""
        self.inputs.append(data)
        return Called("ok", b"out")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{"n": 1}', "ok"),
        (b"{}", "ok"),
        (b"", "no-json"),
        (b'{"n": 1', "no-json"),
        (b'{"n": 1, "n": 2}', "no-json"),
        (b'{"n": 1, "N": 2}', "no-json"),
        (b'{"n": NaN}', "no-json"),
        (b'{"n": "\\ud800"}', "no-json"),
        (b"\xff", "no-json"),
        (b"\xef\xbb\xbf{}", "no-json"),
        (b'{"n": "1"}', "bad-input"),
        (b'{"m": 1}', "bad-input"),
        (b"[]", "bad-input"),
        (b" " * 39 + b"{}", "bad-input"),
    ],
)
def test_only_what_fits_runs(data: bytes, word: str) -> None:
    """SRV-6: what readers could differ on, what the schema refuses and what is too large never reaches a program."""
    runs = Runs()
    called = call(TOOL, data, runs)
    assert (called.word, runs.inputs) == (word, [data] if word == "ok" else [])
    assert called.ok == (word == "ok")
    assert called.ok or called.message


def test_a_value_that_was_read_already_is_looked_at_too() -> None:
    """SRV-6: the other way in has the same bounds."""
    assert check_and_run(TOOL, {"n": 1}, b" " * 41, Runs()).word == "bad-input"
    assert check_and_run(TOOL, {"n": "1"}, b"{}", Runs()).word == "bad-input"


@pytest.mark.parametrize("why", ["failed", "timeout", "too-much-output", "cancelled"])
def test_of_a_failure_the_end_is_told(why: str) -> None:
    """SRV-6: the end of standard error, bounded and without control characters; the output of a failure is not told."""
    called = ended(Ran(why, -9, b"partial", b"x" * 9999 + b"\x1b[2J\nno such card", 1.0))
    assert (called.word, called.output, called.status) == (why, b"", -9)
    assert called.said.endswith("\\x1b[2J\nno such card")
    assert len(called.said) < MOST_SAID + 10


def test_what_could_not_start_is_the_persons_affair() -> None:
    """SRV-6: a path of the machine, or a secret that has no value, is not told to the task."""
    called = ended(Ran("not-started", 127, b"", b"/home/me/charge: no such file", 0.0))
    assert (called.word, called.said, "/home" in called.message) == ("not-started", "", False)
    assert ended(Ran("ok", 0, b"out", b"chatter", 0.0)) == Called("ok", b"out")
    assert refused("busy").message


def test_what_is_shown_has_no_control_characters() -> None:
    """ASK-6: nor directions."""
    assert shown("a\x07\u202eb\n".encode()) == "a\\x07\\u202eb"
