"""What the rows of tests/clients are made of, and how one is run: allowed and refused, by proxy and by capture.

*By proxy* is a task with `--capture off`: nothing but the variables of client_settings.py leads a client to the gate.
*By capture* is a task in whose client's environment none of these variables is left, so that nothing but its own
connections can. Rules of the file: a row says what its client prints word for word, as whole lines; nothing else in
its output is looked at.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.client_programs import note_client, numbers, program_version
from tidegate.runtime.client_settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.product import Product

ALLOWED, REFUSED = "1.2.3.4", "1.2.3.5"
TOOLS = os.path.join(sys.prefix, "clients")
"""Where scripts/setup puts what no Debian package has: node_modules, and an environment for poetry."""
MODULES = os.path.join(TOOLS, "node_modules")
PROXY, CAPTURE = "by proxy", "by capture"
NO_ONE = "would wait for approval; the command line asks no one"


@dataclass(frozen=True)
class Place:
    """Where one run of a client happens: what it is to fetch, and the task's folders."""

    scheme: str
    host: str
    folder: str
    home: str
    ca_file: str

    @property
    def url(self) -> str:
        """The URL with a final slash."""
        return f"{self.scheme}://{self.host}/"

    def write(self, name: str, text: str) -> str:
        """Write a file into the task's folder; return its path."""
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


@dataclass(frozen=True)
class Words:
    """What a client ends with: its status and whole lines of what it prints, in this order.

    In a line `{host}`, `{port}` and `{why}` (the gate's own line about it) are filled in, and `…` stands for what
    differs from run to run, such as a time or an address in memory.
    """

    status: int
    lines: tuple[str, ...]


Said = str | tuple[int, str] | Words


@dataclass(frozen=True)
class Client:
    """One row."""

    name: str
    version: tuple[str, ...]  # the command whose first dotted number is its version
    tried: str  # the version that the words are of
    command: Callable[[Place], Sequence[str]]
    gets: str  # when it was let through: a line that it prints, or the last path it asks a registry for
    refused: dict[tuple[str, str], Words]  # by way and scheme
    alone: Words | None = None  # it knows no proxy, and ends with this where nothing captures it
    only: str = ""  # the beginning of the versions that the row is for
    needs_trust_store: bool = False  # Java's own, in the home folder

    def __str__(self) -> str:
        """Its name, in a test's."""
        return self.name.replace(" ", "-")


def _words(said: Said) -> Words:
    if isinstance(said, str):
        return Words(1, (said,))
    return said if isinstance(said, Words) else Words(said[0], (said[1],))


def refused(
    *, http: Said | None = None, tunnel: Said | None = None, alert: Said, http_by_proxy: Said | None = None
) -> dict[tuple[str, str], Words]:
    """Return the words of a refusal.

    Args:
        http: of an answer 403, by capture and (without `http_by_proxy`) by proxy.
        http_by_proxy: of an http URL by proxy, where that is another.
        tunnel: of a CONNECT that was answered 403.
        alert: of a TLS handshake that ended with access_denied.
    """
    said = {
        (PROXY, "http"): http_by_proxy or http,
        (CAPTURE, "http"): http,
        (PROXY, "https"): tunnel,
        (CAPTURE, "https"): alert,
    }
    return {case: _words(words) for case, words in said.items() if words is not None}


def absent(what: str) -> NoReturn:
    """Skip the test for want of a program; fail it in CI, where scripts/setup has installed it."""
    if os.environ.get("CI") == "true" and os.geteuid() == 0 and not os.path.exists("/run/systemd/system"):
        pytest.fail(f"{what} is not here, and scripts/setup installs it", pytrace=False)
    pytest.skip(f"{what} is not here; scripts/setup installs it, as root")


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_here: dict[str, str] = {}  # the versions of this machine, by the rows' names


def need(row: Client, record_property: Callable[[str, object], None]) -> None:
    """Note a client's version; skip the test where it is not here, or not in the version that the row is for."""
    version = program_version(row.version)
    if version is None:
        absent(row.name)
    if not version.startswith(row.only):
        pytest.skip(f"{row.name}: here it is {version}")
    _here[row.name] = version
    note_client(record_property, row.name, version)


def without_proxies(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv` with none of the variables that lead a client to the gate."""
    names = [row[0] for row in SETTINGS] + ["GIT_CONFIG_COUNT"]
    return ["env", *(word for name in names for word in ("-u", name)), *argv]


def run_client(
    product: Product, way: str, argv: Sequence[str], *options: str, timeout: float = 90
) -> subprocess.CompletedProcess[str]:
    """Run a client in a task that can reach the gate in one way only."""
    if way == PROXY:
        return product.run("--capture", "off", *options, "--", *argv, timeout=timeout)
    return product.run(*options, "--", *without_proxies(argv), timeout=timeout)


def run_inside(product: Product, way: str, argv: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run a client as `run_client` does where its hosts are read: what it is given to trust counts in both ways."""
    if way == PROXY:
        return run_client(product, way, argv, *options)
    bare = without_proxies(argv)
    at = bare.index("JAVA_TOOL_OPTIONS")  # under capture it holds the trust store and nothing else
    return product.run(*options, "--", *bare[: at - 1], *bare[at + 1 :], timeout=90)


def unaided(product: Product, host: str) -> Place:
    """Return where a client runs that is shown no authority by a test: what its environment says counts."""
    return Place("https", host, str(product.folder), str(product.home), "")


def held(product: Product, text: str) -> tuple[str, str]:
    """Write a policy; return the option that names it."""
    (product.folder / "held.yaml").write_text(text)
    return "--policy", "held.yaml"


def trust_store(product: Product, ca_file: str) -> None:
    """Make what Java's clients need to trust an authority."""
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "lab", "-file", ca_file, "-keystore", "trust.p12",
         "-storepass", "changeit"],
        cwd=product.home, check=True, capture_output=True,
    )  # fmt: skip


def shown(product: Product, file: str) -> str:
    """Copy a file to where a task can see it (its /tmp is its own), and return that path."""
    return shutil.copy(file, product.home)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in _COLOURS.sub("", text).splitlines()]


def net_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what tidegate said, without counts: how many connections a client opens is its own affair."""
    return [line.split(" ×")[0] for line in _lines(done.stderr) if line.startswith("net:")]


def own_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what the client wrote, its standard output first."""
    return _lines(done.stdout) + [line for line in _lines(done.stderr) if not line.startswith("net:")]


def assert_prints(
    done: subprocess.CompletedProcess[str], row: Client, words: Words | None, host: str, port: int, why: str = ""
) -> None:
    """Compare what a client ended with; where another version than the row's says it differently, the test is skipped.

    So this comes last in a test: all else holds for every version. `why` is the gate's line, where it is another than
    that nobody was asked.
    """
    assert words is not None
    version = _here[row.name]
    why = why or f"{host}:{port}: {NO_ONE} [no-approver; no-rule, profile balanced]; to allow it: --allow {host}:{port}"
    try:
        _compare(done, words, host, port, why)
    except AssertionError as error:
        tried = numbers(row.tried)
        if numbers(version)[: len(tried)] == tried:
            raise
        pytest.skip(
            f"{row.name} {version} says it in other words than {row.tried}, so its row is to be renewed: {error}"
        )


def _compare(done: subprocess.CompletedProcess[str], words: Words, host: str, port: int, why: str) -> None:
    rest = own_lines(done)
    for line in words.lines:
        filled = line.replace("{host}", host).replace("{port}", str(port)).replace("{why}", why)
        pattern = re.compile(".*".join(re.escape(part) for part in filled.split("…")))
        at = next((number for number, one in enumerate(rest) if pattern.fullmatch(one)), None)
        assert at is not None, f"no line {filled!r} in:\n" + "\n".join(own_lines(done))
        del rest[: at + 1]
    assert done.returncode == words.status, "\n".join(own_lines(done))


def refusal(host: str, port: int) -> list[str]:
    """Return what tidegate says of a refused place, without counts."""
    return [
        f"net: {host}:{port} · refused, {NO_ONE} (no-rule)",
        f"net: to let it through: --allow {host}:{port}",
    ]
