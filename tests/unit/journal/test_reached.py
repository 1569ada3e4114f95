"""tidegate.journal.reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.journal.events import event, refused
from tidegate.journal.line import line_of
from tidegate.journal.reached import HOSTS, Reached
from tidegate.journal.readback import rows_of
from tidegate.model.reason import Reason
from tidegate.model.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path


def test_hosts_are_counted_and_ordered(tmp_path: Path) -> None:
    """SRV-3: reached and refused apart, folded refusals by their count; a journal that is read again says the same."""
    events = [event(bytes_up=10, bytes_down=5), event(), refused(count=4), event(host="c.test")]
    live, again = Reached(), Reached()
    for one in events:
        live.add(one)
    (tmp_path / "log").write_bytes(b"".join(map(line_of, events)))
    again.add_rows(rows_of(str(tmp_path / "log"))[0])
    assert live.rows(2) == again.rows(2)
    assert live.rows(2) == {
        "hosts": [
            {"host": "b.test", "port": 443, "reached": 0, "refused": 4, "bytes": 0},
            {"host": "a.test", "port": 443, "reached": 2, "refused": 0, "bytes": 15},
        ],
        "more": 1,
    }


def test_who_went_away_is_neither(tmp_path: Path) -> None:
    """SRV-3: a client that went away while a person was asked was not refused, as everywhere else; the next one was."""
    gone = refused(verdict=Verdict.ASK, reason=Reason.CLIENT_GONE, count=3)
    events = [gone, refused(verdict=Verdict.ASK, reason=Reason.DENIED_BY_PERSON, host="c.test")]
    live, again = Reached(), Reached()
    for one in events:
        live.add(one)
    (tmp_path / "log").write_bytes(b"".join(map(line_of, events)))
    again.add_rows(rows_of(str(tmp_path / "log"))[0])
    assert live.rows(9) == again.rows(9)
    assert [(one["host"], one["reached"], one["refused"]) for one in live.rows(9)["hosts"]] == [("c.test", 0, 1)]


def test_a_flood_of_names_is_bounded() -> None:
    """SRV-3: a task that tries ever new names does not grow the server; none is lost from the sum."""
    found = Reached()
    for number in range(HOSTS + 500):
        found.add(refused(host=f"h{number}.test"))
    rows = found.rows(10_000)["hosts"]
    assert len(rows) == HOSTS + 1
    assert (rows[0]["host"], rows[0]["refused"]) == ("*", 500)
