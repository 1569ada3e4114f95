"""The table of the hold `uid` as text: whole, and with an element for all that a user has."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tidegate.gate import around
from tidegate.holds import uid_table
from tidegate.holds.uid_table import Ports, change_text, elements, mark_of, table_text


def test_marks_and_users_are_one_to_one() -> None:
    """A mark is one user's and its low bits are free, where other programs keep theirs (HLD-3)."""
    for uid in (uid_table.FIRST, 31234, uid_table.LAST):
        assert mark_of(uid) >> 16 == uid
        assert mark_of(uid) & 0xFFFF == 0
        assert mark_of(uid) < 1 << 32


def test_the_whole_range_is_fenced_without_an_element() -> None:
    """The rules name the range, not users: a process of the range is fenced before anybody knows of it (HLD-3)."""
    text = table_text()
    assert "meta skuid 30000-39999 goto task" in text
    assert "meta skuid 30000-39999 jump redirected" in text
    assert "elements" not in text
    assert "meta skuid 5-6 goto task" in table_text(5, 6)


def test_a_user_has_an_element_for_each_way_to_its_gate() -> None:
    """Pairs of uid and port for every listener, and nothing for what is not captured (HLD-3, HLD-6)."""
    ports = Ports(4001, 4002, 4003, {("127.0.0.1", 5432): 4004, ("::1", 5432): 4004})
    found = elements(30001, ports)
    assert [element for name, element in found if name == "gates"] == [f"30001 . {port}" for port in range(4001, 4005)]
    assert ("met6", "30001 . ::1 . 5432 : 4004") in found
    assert ("captured", "30001 : 4002") in found
    alone = dict(elements(30001, Ports(4001)))
    assert "captured" not in alone
    assert "names" not in alone


def test_a_change_is_one_transaction_of_elements() -> None:
    """What is sent to nft is a line for each element, of this table only."""
    text = change_text("create", [("gates", "30001 . 1"), ("own", "30001 . 2")])
    assert text.splitlines() == [
        "create element inet tidegate gates { 30001 . 1 }", "create element inet tidegate own { 30001 . 2 }",
    ]  # fmt: skip


@pytest.mark.usefixtures("isolated")
@pytest.mark.parametrize("nflog", [True, False])
def test_what_is_turned_away_is_logged_where_it_can_be_read(nflog: bool) -> None:
    """JRN-3: to a group with nfnetlink_log, else to the kernel's log with whose it was; nft takes both."""
    text = table_text(nflog=nflog)
    assert (f"group {uid_table.LOG_GROUP}" in text) is nflog
    assert ("flags skuid" in text) is not nflog
    assert f'log prefix "{around.PREFIX}"' in text, "what the reader looks for"
    nft = shutil.which("nft")
    if nft is None or os.geteuid() != 0:
        pytest.skip("only root has nft check a table with sockets' marks")
    done = subprocess.run([nft, "-c", "-f", "-"], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
