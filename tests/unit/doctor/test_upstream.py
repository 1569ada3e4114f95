"""tidegate.doctor.upstream."""

from __future__ import annotations

import socket

from tidegate.doctor.check import FAIL, OK
from tidegate.doctor.upstream import check_upstream


def test_no_proxy_no_row() -> None:
    """SRV-5: most machines have none."""
    assert check_upstream({}) == []


def test_one_that_answers_is_fine_and_says_that_it_resolves_again() -> None:
    """ADR-5, GAT-8: doctor says what an upstream does with names."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (row,) = check_upstream({"HTTPS_PROXY": f"http://user:secret@127.0.0.1:{port}"})
    assert row.state == OK
    assert "looks names up again" in row.what
    assert "secret" not in f"{row}"


def test_one_that_does_not_answer_fails() -> None:
    """SRV-5: every run would fail with it; the same proxy for both kinds is one row."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (row,) = check_upstream({"all_proxy": f"socks5://127.0.0.1:{port}"})
    assert row.state == FAIL
    assert "refused" in row.what


def test_one_that_cannot_be_used_fails() -> None:
    """GAT-8: the words of a start, before one fails."""
    (row,) = check_upstream({"HTTPS_PROXY": "https://p.test"})
    assert row.state == FAIL
    assert row.fix
