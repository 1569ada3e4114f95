"""A task that puts all it can into the record, and what arrives at each kind of receiver (JRN-6, JRN-5)."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tests.product import Product
from tests.served import Served
from tests.sinks.receivers import Bulk, Hook, Jira, Otlp, Receiver, Syslog, until
from tests.sinks.test_kill import words_for
from tests.unit.journal.sinks.test_syslog import GRAMMAR
from tidegate.journal.chain import line_hash

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = 'x"] [evil a="b\n<0>1 - - - - - - forged {code}[~admin]'
ATTACK = r"""
import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
hosts = [
    b'a"]b.test', b"[~admin].test", b"{code}.test", b"[click|https://evil.test].test", b"a\\n.test", b"a\n<0>1.test",
    b"a\r\nX: y", b"\x1b[2J.test", "\u202e.test".encode(), b"a%0d%0a.test", b"x" * 1000000, b"a.test\\", b"@admin",
    b"!https://evil.test/x.png!", b"ok.test",
]
for host in hosts:
    for line in (b"CONNECT " + host + b":443 HTTP/1.1\r\nHost: " + host + b":443\r\n\r\n",
                 b"GET http://" + host + b"/ HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"):
        with socket.create_connection((proxy.hostname, proxy.port)) as sock:
            try:
                sock.sendall(line)
                sock.recv(4096)
            except OSError:
                pass
"""


def strings(value: Any) -> list[str]:
    """Return all texts in a value."""
    if isinstance(value, dict):
        return [one for part in value.values() for one in strings(part)]
    if isinstance(value, list):
        return [one for part in value for one in strings(part)]
    return [value] if isinstance(value, str) else []


def test_nothing_of_a_task_becomes_a_record_a_field_or_markup(tmp_path: Path) -> None:
    """JRN-6, JRN-5: line ends, quotes, escapes, names of a megabyte, `{code}`, mentions and links in hosts and folders.

    All receivers get the same lines, each one line of JSON under the chain; syslog's grammar holds; the comment is
    plain.
    """
    product = Product(tmp_path, user=False)
    folder = product.home / FOLDER
    folder.mkdir()
    receivers: list[Receiver] = [Hook(), Bulk(), Otlp(), Syslog("tcp"), Jira()]
    hook, bulk, otlp, syslog, jira = receivers
    for one in receivers:
        one.up()
    try:
        with Served(product, "--no-portal") as server:
            for one in receivers:
                words = words_for(one, tmp_path)
                words[2] = f"to-{one.kind}"
                done = server.tidegate(*words, *(["--from-start"] if one is not jira else []))
                assert done.returncode == 0, done.stderr
            name = "[~admin]{noformat}\u202e"
            made = server.tidegate("task", "create", "--issue", "ABC-1", "--name", name, "--folder", str(folder))
            task = made.stdout.split()[0]
            server.tidegate("exec", task, "--", "python3", "-c", ATTACK)
            assert server.tidegate("task", "end", task).returncode == 0
            last = next(line["seq"] for line in server.actions() if line["type"] == "task.ended")
            for one in (hook, bulk, otlp, syslog):
                until(lambda one=one: last in one.seqs, lambda one=one: (one.kind, one.seqs, last))  # type: ignore[misc]
            assert isinstance(jira, Jira)
            until(lambda: jira.comments.get("ABC-1"))
            log = (server.state / "log" / "actions.jsonl").read_bytes().splitlines()
    finally:
        for one in receivers:
            one.down()
    refused = [line for line in map(json.loads, log) if line["type"] == "net.blocked"]
    assert len(refused) > 5
    assert isinstance(hook, Hook)
    assert isinstance(bulk, Bulk)
    assert isinstance(syslog, Syslog)
    sent = b"".join(body for _, _, _, body in hook.got).splitlines()
    assert sent[:last] == log[:last]
    assert all(json.loads(after)["prev"] == line_hash(before) for before, after in pairwise(sent))
    for line in sent:
        assert re.fullmatch(rb"[ -~]+", line)
        assert len(line) < 20_000
    documents = [json.loads(line) for _, _, _, body in bulk.got for line in body.splitlines()][1::2]
    assert [one["seq"] for one in documents][:last] == list(range(1, last + 1))
    for message in syslog.messages:
        found = GRAMMAR.fullmatch(message)
        assert found, message
        assert found[7] == b"tidegate@32473"
        assert b"\n" not in message
    assert len(syslog.messages) == len(set(syslog.ids))
    (comment,) = jira.comments["ABC-1"]
    head, *lines, foot = comment.split("\n")
    assert (head, foot) == ("{noformat}", "{noformat}")
    assert all(re.fullmatch(r"[A-Za-z0-9 .:_,;?-]*", line) for line in lines)
    assert len(comment) < 5000
    assert "ok.test:443" in comment
