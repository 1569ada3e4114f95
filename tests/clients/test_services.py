"""Clients of real services, by proxy and by capture, let through and refused, word for word (GAT-7 to GAT-10).

The rows are in services.py, the servers in servers.py. Versions are printed at the end of the run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import ssl
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.accounts import need_account
from tests.client_programs import trusting
from tests.clients import servers
from tests.clients.kit import (
    ALLOWED,
    CAPTURE,
    PROXY,
    Client,
    Place,
    absent,
    assert_prints,
    need,
    net_lines,
    own_lines,
    refusal,
    run_client,
    shown,
)
from tests.clients.registries import repository
from tests.clients.services import PORTS, SERVICES
from tests.https_site import HttpsSite
from tests.product import PYTHON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

CASES = [
    pytest.param(row, way, service, id=f"{row}-{service}-{way.replace(' ', '-')}")
    for row in SERVICES
    for service in dict.fromkeys(service for _, service in row.refused)
    for way in (PROXY, CAPTURE)
]
HOW = {PROXY: "tunneled", CAPTURE: "captured"}
CONNECT = os.path.join(os.path.dirname(__file__), "connect.py")
TEXT = "it was there\n"

pytestmark = pytest.mark.parametrize(("row", "way", "service"), CASES)


@contextlib.contextmanager
def serving(product: Product, lab: Lab, tmp_path: Path, way: str, service: str) -> Iterator[None]:
    """Run the service at a.test, and give the product what its client needs."""
    listener = lab.listener(ALLOWED, PORTS[service])
    (product.home / "there").write_text(TEXT)
    if service in {"ssh", "git"}:
        repository(product.home)
    if service in {"ssh", "postgres"}:
        need_account()
    if service == "ssh":
        if not os.path.exists(servers.SSHD):
            absent("sshd")
        (tmp_path / "sshd").mkdir()
        with servers.Sshd(listener, tmp_path / "sshd", str(product.home)) as sshd:
            if way == PROXY:
                script = shutil.copy(CONNECT, product.home)
                with open(sshd.config, "a", encoding="ascii") as file:
                    file.write(f"ProxyCommand {PYTHON} {script} %h %p\n")
            yield
    elif service == "git":
        with HttpsSite(listener, ["a.test"], tmp_path) as site:
            site.repositories = product.home
            product.environment.update(trusting(shown(product, site.ca_file)))
            yield
    elif service == "postgres":
        if not os.path.exists(servers.POSTGRES):
            absent("a PostgreSQL server")
        with servers.postgres(listener):
            yield
    elif service == "redis":
        if shutil.which("redis-server") is None:
            absent("a Redis server")
        with servers.redis(listener):
            yield
    else:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        product.environment.update(trusting(shown(product, str(tmp_path / "ca.pem"))))
        leaf = authority.issue_cert("a.test")
        context = None
        if service == "wss":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            leaf.configure_cert(context)
        if service == "grpc":
            with servers.echo_by_grpc(listener, tmp_path, leaf):
                yield
        else:
            with servers.websocket(listener, context):
                yield


@pytest.fixture
def served(
    product: Product,
    lab: Lab,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    row: Client,
    way: str,
    service: str,
) -> Iterator[None]:
    """The row's client is here, and its service at a.test."""
    need(row, record_property)
    with serving(product, lab, tmp_path, way, service):
        yield


def place(product: Product, service: str, host: str) -> Place:
    """Where the row's client runs, and whom it asks."""
    return Place(service, host, str(product.folder), str(product.home), "")


@pytest.mark.usefixtures("served")
def test_it_is_served(product: Product, row: Client, way: str, service: str) -> None:
    """GAT-1, GAT-9, GAT-10, HLD-6: with a rule for host and port the service answers, in the way that was meant."""
    port = PORTS[service]
    done = run_client(product, way, row.command(place(product, service, "a.test")), "--allow", f"a.test:{port}")
    if way == PROXY and row.alone is not None:
        assert net_lines(done) == []
        assert_prints(done, row, row.alone, "a.test", port)
        return
    assert done.returncode == 0, done.stderr
    if row.gets:
        assert row.gets in own_lines(done)
    else:
        got = product.folder / ("cloned/file" if row.name.startswith("git") else "got")
        assert got.read_text() == TEXT
    # A client may try several addresses at once, and leave all but one.
    lines = [line.partition(" ×")[0] for line in net_lines(done) if "· not connected, " not in line]
    assert lines == [f"net: a.test:{port} · {HOW[way]} (command-line)"]


@pytest.mark.usefixtures("served", "nobody")
def test_it_is_refused_word_for_word(product: Product, row: Client, way: str, service: str) -> None:
    """GAT-7, GAT-9, B73: what its user reads, before any look-up; tidegate's lines name the rule that would help."""
    port = PORTS[service]
    done = run_client(product, way, row.command(place(product, service, "b.test")), "--allow", f"a.test:{port}")
    if way == PROXY and row.alone is not None:
        assert net_lines(done) == []
        assert_prints(done, row, row.alone, "b.test", port)
        return
    assert net_lines(done) == refusal("b.test", port)
    assert_prints(done, row, row.refused[way, service], "b.test", port)
