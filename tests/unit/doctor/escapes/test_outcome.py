"""What answers mean, as a table with neighbours."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.doctor.escapes.outcome import ESCAPED, OK, UNTESTABLE, results, strangers
from tidegate.doctor.escapes.table import CAPTURED, Row, named


def row(name: str) -> Row:
    """A row that must end with EPERM or EACCES."""
    return Row(named(lambda: None, name, "It tries."), (CAPTURED,), {CAPTURED: ("EPERM", "EACCES")}, "both", None)


def answer(**parts: Any) -> dict[str, Any]:
    """What a keeper says where nothing happened."""
    return {"answers": {"one": "EPERM", "one_more": "EACCES"}, "heard": [], "asked": [], "missing": {}} | parts


@pytest.mark.parametrize(
    ("parts", "state", "seen"),
    [
        ({}, OK, "EPERM"),
        ({"answers": {"one": "passed"}}, ESCAPED, "passed"),
        ({"answers": {"one": "EINVAL"}}, ESCAPED, "EINVAL"),
        ({"answers": {}}, ESCAPED, "no answer"),
        ({"missing": {"one": "no MPTCP in this kernel"}}, UNTESTABLE, "no MPTCP in this kernel"),
        ({"missing": {"one": "no MPTCP"}, "answers": {"one": "passed"}}, ESCAPED, "passed"),
        (
            {"heard": [["tcp 1.2.3.4 port 80", "GET /escaped-one HTTP/1.1"]]},
            ESCAPED,
            "EPERM; heard by tcp 1.2.3.4 port 80",
        ),
        ({"heard": [["tcp 1.2.3.4 port 80", "escaped-one_more"]]}, OK, "EPERM"),
        ({"heard": [["tcp 1.2.3.4 port 80", "GET / HTTP/1.1"]]}, OK, "EPERM"),
        ({"asked": ["escaped-one.denied.test"]}, ESCAPED, "EPERM; heard by the resolver outside"),
        ({"asked": ["good.test"]}, OK, "EPERM"),
    ],
)
def test_a_row_is_judged_by_its_answer_and_by_the_canaries(parts: dict[str, Any], state: str, seen: str) -> None:
    """Any other answer, none at all, or its name at a canary is an escape; what the kernel lacks is never held."""
    (found,) = results([row("one")], CAPTURED, answer(**parts))
    assert (found.state, found.seen) == (state, seen)


def test_a_visit_without_a_word_counts_anywhere_but_at_the_allowed_origin() -> None:
    """A bare connection to a canary is an escape of somebody's; the gate may connect to what is allowed."""
    heard = [
        ["tcp 1.2.3.4 port 80", ""],
        ["tcp 2600:beef::4 port 443", ""],
        ["tcp 10.0.0.1 port 22", ""],
        ["tcp 11.2.3.4 port 80", ""],
        ["udp 1.2.3.5 port 53", "escaped-one"],
    ]
    assert strangers(answer(heard=heard)) == ["tcp 10.0.0.1 port 22", "tcp 11.2.3.4 port 80"]
