"""Every client that fetches a URL, where its requests are read inside TLS: by proxy and by capture (INS-2, INS-3).

The rows are those of table.py; nothing but what the task is given makes its clients trust its authority.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.kit import (
    ALLOWED,
    CAPTURE,
    PROXY,
    Client,
    Place,
    need,
    net_lines,
    own_lines,
    run_inside,
)
from tests.clients.table import FETCHERS
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.api import Lab
    from tests.product import Product

POLICY = """
network:
  runtime:
    allow:
      - {host: a.test:443, paths: [%s]}
"""

CASES = [(client, way) for client in FETCHERS for way in (PROXY, CAPTURE)]


@pytest.mark.parametrize(("row", "way"), CASES, ids=lambda value: str(value).replace(" ", "-"))
def test_a_client_is_read_and_does_not_notice(
    product: Product, lab: Lab, record_property: Callable[[str, object], None], row: Client, way: str
) -> None:
    """INS-2, INS-3: it trusts the authority of its task by what the task is given, and gets its answer."""
    need(row, record_property)
    if row.alone is not None and way == PROXY:
        pytest.skip("it knows no proxy")
    origin = lab.origin("http", ALLOWED, 443, tls="a.test", body=f"{row.gets}\n")
    (product.folder / "read.yaml").write_text(POLICY % '"/**"')
    place = Place("https", "a.test", str(product.folder), str(product.home), product.environment["SSL_CERT_FILE"])
    argv = [word for word in row.command(place) if not word.startswith("-Djavax.net.ssl.")]  # what it is given counts
    done = run_inside(product, way, argv, "--policy", "read.yaml")
    assert (done.returncode, row.gets in own_lines(done)) == (0, True), done.stderr
    assert [line for line in net_lines(done) if "not connected" not in line] == ["net: a.test:443 · inspected (policy)"]
    assert origin.requests >= 1


def test_a_path_that_is_not_allowed_is_what_the_client_prints(product: Product, lab: Lab) -> None:
    """INS-6, GAT-7: 403 with the line that every refusal has, inside TLS; the exit status can say it."""
    origin = lab.origin("http", ALLOWED, 443, tls="a.test", body="hello")
    (product.folder / "read.yaml").write_text(POLICY % '"/repos/acme/**"')
    words = ("--fail-on-refusal", "--policy", "read.yaml", "--", "curl", "-sS")
    done = product.run(*words, "https://a.test/repos/acme/x", "https://a.test/repos/other/x")
    assert done.stdout.startswith("hello")
    assert "the rule allows other methods or paths only [method-not-allowed; rule 'a.test:443'" in done.stdout
    assert done.returncode == 77
    assert "net: a.test:443 · inspected (policy)" in done.stderr
    assert "net: a.test:443 · refused, the rule allows other methods or paths only (policy)" in done.stderr
    assert origin.requests == 1


def test_a_tunnel_beside_it_keeps_its_own_certificate(product: Product, lab: Lab) -> None:
    """B109: one process reaches a host that is read and one that is not; both are trusted."""
    lab.origin("http", ALLOWED, 443, tls="a.test", body="read\n")
    lab.origin("http", "1.2.3.5", 443, tls="b.test", body="not read\n")
    (product.folder / "read.yaml").write_text(POLICY % '"/**"' + "      - b.test:443\n")
    done = product.run("--policy", "read.yaml", "--", "curl", "-sS", "https://a.test/", "https://b.test/")
    assert done.stdout == "read\nnot read\n"
    assert net_lines(done) == ["net: a.test:443 · inspected (policy)", "net: b.test:443 · tunneled (policy)"]


def test_what_it_trusts_is_read_only_and_its_own(product: Product, lab: Lab) -> None:
    """INS-2: the bundle cannot be written, lies over the distribution's too, and the machine's file is not changed."""
    del lab
    (product.folder / "read.yaml").write_text(POLICY % '"/**"')
    system = "/etc/ssl/certs/ca-certificates.crt"
    with open(system, "rb") as file:
        before = file.read()
    script = (
        "grep -c BEGIN $SSL_CERT_FILE; cmp $SSL_CERT_FILE /etc/ssl/certs/ca-certificates.crt && echo same;"
        " (echo x >> $SSL_CERT_FILE) 2>/dev/null || echo kept; rm -f $SSL_CERT_FILE 2>/dev/null || echo there;"
        " (echo x >> /etc/ssl/certs/ca-certificates.crt) 2>/dev/null || echo kept"
    )
    done = product.run("--policy", "read.yaml", "--", "sh", "-c", script)
    count, *rest = done.stdout.split()
    assert rest == ["same", "kept", "there", "kept"], done.stderr
    assert int(count) == before.count(b"BEGIN CERTIFICATE") + 2  # the lab's root that the caller trusts, and its own
    with open(system, "rb") as file:
        assert file.read() == before


def test_without_such_a_rule_nothing_is_set(product: Product, lab: Lab) -> None:
    """INS-1: no bundle, no variable: a task in which nothing is read is as it was."""
    del lab
    script = "ls /run/tidegate; echo $NODE_EXTRA_CA_CERTS$GIT_SSL_CAINFO"
    done = product.run("--profile", "closed", "--allow", "a.test", "--", "sh", "-c", script)
    assert done.stdout.strip() in {"", product.environment.get("NODE_EXTRA_CA_CERTS", "")} or "/run/" not in done.stdout
    assert "No such file" in done.stderr


def test_behind_a_server_too(product: Product, lab: Lab) -> None:
    """INS-1, INS-2: a run that the server gates, and commands of a created task: each task has its authority there."""
    lab.origin("http", ALLOWED, 443, tls="a.test", body="hello\n")
    (product.folder / "read.yaml").write_text(POLICY % '"/repos/acme/**"')
    curl = ("curl", "-sS", "https://a.test/repos/acme/x", "https://a.test/other")
    yours = product.environment
    product.environment = {name: text for name, text in yours.items() if "CA" not in name and "CERT" not in name}
    server = Served(product)  # which does not know the roots of whoever begins a command
    product.environment = yours
    with server:
        done = product.run("--policy", "read.yaml", "--", *curl)
        assert done.stdout.startswith("hello\n"), done.stderr
        assert "[method-not-allowed; rule 'a.test:443'" in done.stdout
        assert "net: a.test:443 · inspected (policy)" in done.stderr
        task = product.tidegate("task", "create", "--policy", "read.yaml").stdout.strip()
        for _ in range(2):
            done = product.tidegate("exec", task, "--", *curl)
            assert done.stdout.startswith("hello\n"), done.stderr
            assert "method-not-allowed" in done.stdout
