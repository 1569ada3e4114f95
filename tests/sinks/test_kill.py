"""A whole server, killed between sending and the answer: what it leads to each sink afterwards (JRN-6, HLD-8)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.product import Product
from tests.served import Served
from tests.sinks.receivers import Receiver, Web, until
from tests.sinks.rig import KINDS, Log, authority, receiver

if TYPE_CHECKING:
    from pathlib import Path


def words_for(one: Receiver, folder: Path) -> list[str]:
    """Return the command line that sets a sink to this receiver."""
    words = ["sinks", "set", "one", one.url]
    if one.kind != "syslog":
        key = folder / "key"
        key.write_bytes(one.key + b"\n")
        key.chmod(0o600)
        words += ["--key-file", str(key)]
    if "s://" in one.url:
        pem = folder / "ca.pem"
        pem.write_text(authority().pem)
        words += ["--ca", str(pem)]
    return words


def arrived(one: Receiver, wanted: list[int]) -> None:
    """Wait until all of these have arrived."""
    until(lambda: set(wanted) <= set(one.seqs), lambda: sorted(set(wanted) - set(one.seqs)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_killed_between_sending_and_the_answer_loses_nothing(tmp_path: Path, kind: str) -> None:
    """JRN-6: what was on its way at a kill -9, and what others wrote while no server was there, all arrives.

    What repeats has the id that it had; where the receiver can tell by that (Elasticsearch, Jira), it is there once.
    """
    product = Product(tmp_path, user=False)
    with receiver(kind, tmp_path) as one:
        server = Served(product, "--no-portal")
        try:
            done = server.tidegate(*words_for(one, tmp_path))
            assert done.returncode == 0, done.stderr
            log = Log(product.state)
            first = log.write(kind, 3)
            arrived(one, first)
            until(lambda: json.loads(server.tidegate("sinks", "--json").stdout)["position"] >= first[-1])
            if isinstance(one, Web):
                one.gate.clear()
                before = len(one.got)
                second = log.write(kind, 3)
                until(lambda: len(one.got) > before)
            else:
                second = log.write(kind, 3)
                arrived(one, second)
        finally:
            server.kill()
        third = log.write(kind, 2)  # as a run beside no server does
        if isinstance(one, Web):
            one.gate.set()
        with Served(product, "--no-portal"):
            arrived(one, first + second + third)
        names = list(dict.fromkeys(one.ids))
        numbers = [int(name.partition("-")[0]) for name in names]
        assert numbers == sorted(set(numbers))
        if kind in ("elasticsearch", "jira"):
            assert len(names) == len(one.ids)
        log.log.close()
