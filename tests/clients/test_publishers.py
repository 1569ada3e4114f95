"""Every package manager at a registry that is read inside TLS: what it fetches passes, what it publishes is refused.

The rows are in package_managers.py and publishers.py, the registries in real_registries.py. Versions are printed at the
end of the run. The tasks trust what they are given, and nothing else (INS-2, INS-3, INS-6).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.clients.kit import (
    CAPTURE,
    PROXY,
    Client,
    assert_prints,
    need,
    net_lines,
    run_inside,
    unaided,
)
from tests.clients.package_managers import PACKAGE_MANAGERS
from tests.clients.publishers import PUBLISHERS, WHY, Publisher
from tests.clients.registries import NAME
from tests.clients.services import SERVICES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.real_registries import House
    from tests.product import Product

READS = """
network:
  runtime:
    allow:
      - {host: "%s:443", methods: [%s], paths: [%s]}
"""
_ROWS = {row.name: row for row in (*PACKAGE_MANAGERS, *SERVICES)}
_HOSTS = {row.fetch: row.host for row in PUBLISHERS} | {"Go": "go.test"}
FETCH = [(_ROWS[name], host) for name, host in _HOSTS.items()]
_WHEEL = f"/packages/{NAME}-1.0-py3-none-any.whl"
_GETS = {"pip": _WHEEL, "uv": _WHEEL, "poetry": _WHEEL, "git over https": "/git/one.git/info/refs"}
_WAYS = (PROXY, CAPTURE)
_PRESETS = {
    "pypi.test": "pypi",
    "npm.test": "npm",
    "crates.test": "crates",
    "gems.test": "rubygems",
    "maven.test": "maven",
    "go.test": "go",
}
_READ_ONLY = "package registries are read-only here"
_SLOW = {"Maven", "mvn deploy"}


def _cases(rows: list[tuple[Client, str]], ways: tuple[str, ...] = _WAYS) -> list[object]:
    return [
        pytest.param(row, host, way, marks=pytest.mark.slow if row.name in _SLOW else (), id=f"{row}-{way[3:]}")
        for row, host in rows
        for way in ways
    ]


def _by_preset(rows: list[tuple[Client, str]]) -> list[object]:
    return _cases([(row, host) for row, host in rows if host in _PRESETS], (PROXY,))


def default_policy(product: Product, host: str) -> tuple[str, str]:
    """Write a policy that says nothing but that a host is a preset's; return the option that names it."""
    (product.folder / "read.yaml").write_text(f"profile: balanced\npresets: {{{_PRESETS[host]}: ['{host}:443']}}\n")
    return "--policy", "read.yaml"


def policy(product: Product, host: str, *, writes: bool = False) -> tuple[str, str]:
    """Write the policy of a test; return the option that names it."""
    methods, paths = ("GET, HEAD", '"/**"')
    if writes:
        methods = "GET, HEAD, POST, PUT, DELETE"
    elif host == "git.test":
        methods, paths = "GET, HEAD, POST", '"/git/*/info/refs", "/git/*/git-upload-pack"'
    (product.folder / "read.yaml").write_text(READS % (host, methods, paths))
    return "--policy", "read.yaml"


@pytest.mark.parametrize(("row", "host", "way"), _cases(FETCH))
def test_it_fetches_and_is_read(
    product: Product, house: House, record_property: Callable[[str, object], None], row: Client, host: str, way: str
) -> None:
    """INS-2, INS-3: it trusts the authority of its task by what it is given, and gets its package."""
    need(row, record_property)
    done = run_inside(product, way, row.command(unaided(product, host)), *policy(product, host))
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(one.startswith(f"GET {host} {_GETS.get(row.name, row.gets)}") for one in house.arrived())
    lines = [line for line in net_lines(done) if "· not connected, " not in line]  # from a race of its addresses
    assert lines == [f"net: {host}:443 · inspected (policy)"]


@pytest.mark.parametrize(("client", "host", "way"), _cases([(row.client, row.host) for row in PUBLISHERS]))
def test_a_publish_is_refused_word_for_word(
    product: Product, house: House, record_property: Callable[[str, object], None], client: Client, host: str, way: str
) -> None:
    """INS-6, GAT-7: its user reads why; the registry hears nothing of it; what it reads on the way passes."""
    need(client, record_property)
    done = run_inside(product, way, client.command(unaided(product, host)), *policy(product, host))
    assert net_lines(done)[-1] == f"net: {host}:443 · refused, {WHY} (policy)"
    assert all(one.startswith("GET ") for one in house.arrived())
    where = f"{host}:443"
    why = f"{where}: {WHY} [method-not-allowed; rule '{where}' (policy, read.yaml:5:16)]"
    assert_prints(done, client, client.refused[way, "https"], host, 443, why)


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=pytest.mark.slow if row.client.name in _SLOW else (), id=str(row)) for row in PUBLISHERS],
)
def test_a_publish_that_is_allowed_arrives(
    product: Product, house: House, record_property: Callable[[str, object], None], row: Publisher
) -> None:
    """INS-6: the neighbour, whose methods are allowed: the registry takes it, and it was read."""
    need(row.client, record_property)
    options = policy(product, row.host, writes=True)
    done = run_inside(product, PROXY, row.client.command(unaided(product, row.host)), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = re.compile(".*".join(re.escape(part) for part in row.client.gets.split("…")) + r"[^/]* 20[01] HTTP/.*")
    assert [one for one in house.arrived() if wanted.fullmatch(one)], house.arrived()
    assert f"net: {row.host}:443 · inspected (policy)" in done.stderr  # poetry ends no line of its own
    assert "refused" not in done.stderr


@pytest.mark.parametrize(("row", "host", "way"), _by_preset(FETCH))
def test_it_fetches_from_a_preset(
    product: Product, house: House, record_property: Callable[[str, object], None], row: Client, host: str, way: str
) -> None:
    """INS-7, B128: what each tool does to fetch is in its registry's table, with nothing else said."""
    need(row, record_property)
    done = run_inside(product, way, row.command(unaided(product, host)), *default_policy(product, host))
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(one.startswith(f"GET {host} {_GETS.get(row.name, row.gets)}") for one in house.arrived())
    lines = [line for line in net_lines(done) if "· not connected, " not in line]  # from a race of its addresses
    assert lines == [f"net: {host}:443 · inspected (package-registries)"]


@pytest.mark.parametrize(("client", "host", "way"), _by_preset([(row.client, row.host) for row in PUBLISHERS]))
def test_a_publish_to_a_preset_is_refused(
    product: Product, house: House, record_property: Callable[[str, object], None], client: Client, host: str, way: str
) -> None:
    """INS-7, GAT-7, B128: with nothing else said; its user reads why, and the registry hears nothing of it."""
    need(client, record_property)
    done = run_inside(product, way, client.command(unaided(product, host)), *default_policy(product, host))
    assert net_lines(done)[-1].startswith(f"net: {host}:443 · refused, {_READ_ONLY}; ")
    assert all(one.startswith("GET ") for one in house.arrived())
    shown = done.stdout + "\n".join(line for line in done.stderr.splitlines() if not line.startswith("net: "))
    assert _READ_ONLY in " ".join(shown.replace("│", " ").split()), shown
    assert done.returncode == client.refused[way, "https"].status
