"""Each variable of client_settings' TRUST makes its tools trust a bundle, and without it they do not (INS-2).

The tools run without a gate here, with one variable and nothing else of the kind: in a task all are set, so that a
wrong name would not be seen. That all of them together do is in test_publishers.py and test_inspection.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.client_programs import note_client, program_version
from tests.clients import publishers, servers
from tests.clients.kit import ALLOWED, Place, absent, unaided
from tests.clients.package_managers import PACKAGE_MANAGERS
from tests.clients.registries import NAME
from tests.clients.services import SERVICES
from tests.clients.table import FETCHERS
from tidegate.runtime.client_settings import TRUST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.real_registries import House
    from tests.lab.api import Lab
    from tests.product import Product

_ROWS = {row.name: row for row in (*PACKAGE_MANAGERS, *SERVICES, *FETCHERS)}
NOT_INSTALLED = {"aws", "nix"}  # scripts/setup brings them not; they are driven where they are
UNTRIED = {"HEX_CACERTS_PATH", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE"}
ELSEWHERE = {
    "JAVA_TOOL_OPTIONS",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
}  # the first in test_inspection.py, the other below


@dataclass(frozen=True)
class Told:
    """One tool that is told by one variable."""

    variable: str
    name: str
    version: tuple[str, ...]
    host: str
    command: Callable[[Place], list[str]]

    def __str__(self) -> str:
        """Its name, in a test's."""
        return f"{self.variable}-{self.name.replace(' ', '-')}"


def _told(variable: str, name: str, host: str) -> Told:
    row = _ROWS[name]
    return Told(variable, name, row.version, host, lambda place: list(row.command(place)))


def _bundle(place: Place) -> list[str]:
    place.write("Gemfile", f'source "{place.url}gems"\ngem "{NAME}"\n')
    return ["bundle", "lock"]


def _aws(place: Place) -> list[str]:
    return ["env", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_MAX_ATTEMPTS=1", "aws", "s3api",
            "list-buckets", "--region", "us-east-1", "--endpoint-url", place.url]  # fmt: skip


def _nix(place: Place) -> list[str]:
    store = f"{place.folder}/nix"
    return ["env", f"NIX_STORE_DIR={store}/store", f"NIX_STATE_DIR={store}/var", f"NIX_LOG_DIR={store}/log",
            "NIX_CONF_DIR=/nowhere", "NIX_REMOTE=", "nix-prefetch-url", "--option", "build-users-group", "",
            "--option", "download-attempts", "1", f"{place.url}go/tide.test/one/@v/v1.0.0.mod"]  # fmt: skip


def _twine(place: Place) -> list[str]:
    row = next(one.client for one in publishers.PUBLISHERS if one.client.name == "twine")
    return list(row.command(place))


_TOOLS: tuple[Told, ...] = (
    _told("SSL_CERT_FILE", "uv", "pypi.test"),
    _told("SSL_CERT_FILE", "gem", "gems.test"),
    _told("SSL_CERT_FILE", "Go", "go.test"),
    _told("SSL_CERT_FILE", "pnpm", "npm.test"),
    _told("SSL_CERT_FILE", "Python aiohttp", "small.test"),
    _told("SSL_CERT_FILE", "Python httpx", "small.test"),
    _told("SSL_CERT_FILE", "Ruby open-uri", "small.test"),
    _told("CURL_CA_BUNDLE", "curl", "small.test"),
    _told("CURL_CA_BUNDLE", "Python requests", "small.test"),
    _told("REQUESTS_CA_BUNDLE", "Python requests", "small.test"),
    _told("REQUESTS_CA_BUNDLE", "poetry", "pypi.test"),
    Told("REQUESTS_CA_BUNDLE", "twine", (publishers.TWINE, "--version"), "pypi.test", _twine),
    _told("PIP_CERT", "pip", "pypi.test"),
    _told("GIT_SSL_CAINFO", "git over https", "git.test"),
    _told("NODE_EXTRA_CA_CERTS", "Node 20 fetch", "small.test"),
    _told("NODE_EXTRA_CA_CERTS", "Node 24 http", "small.test"),
    _told("NODE_EXTRA_CA_CERTS", "npm", "npm.test"),
    _told("NODE_EXTRA_CA_CERTS", "Yarn 4", "npm.test"),
    _told("NODE_EXTRA_CA_CERTS", "Bun", "npm.test"),
    _told("NODE_EXTRA_CA_CERTS", "Bun fetch", "small.test"),
    _told("npm_config_cafile", "npm", "npm.test"),
    _told("npm_config_cafile", "Yarn 1", "npm.test"),
    _told("YARN_HTTPS_CA_FILE_PATH", "Yarn 4", "npm.test"),
    _told("CARGO_HTTP_CAINFO", "cargo", "crates.test"),
    _told("DENO_CERT", "Deno fetch", "small.test"),
    Told("BUNDLE_SSL_CA_CERT", "bundler", ("bundle", "--version"), "gems.test", _bundle),
    Told("AWS_CA_BUNDLE", "aws", ("aws", "--version"), "small.test", _aws),
    Told("NIX_SSL_CERT_FILE", "nix", ("nix-prefetch-url", "--version"), "go.test", _nix),
)


def test_every_variable_is_driven_or_named_here() -> None:
    """INS-2: the table's rows and these tests are of the same variables; what was not tried says so in the table."""
    tried = {row[0]: row[4] for row in TRUST}
    assert {one.variable for one in _TOOLS} | ELSEWHERE | UNTRIED == set(tried)
    assert {name for name, when in tried.items() if when == "not tried"} == UNTRIED


@pytest.mark.parametrize("tool", _TOOLS, ids=str)
def test_the_variable_alone_makes_its_tool_trust(
    product: Product, house: House, record_property: Callable[[str, object], None], tool: Told
) -> None:
    """INS-2, B109, B112: with it the tool (Go too) gets what it asks for; without it, it trusts nobody here."""
    version = program_version(tool.version)
    if version is None and tool.name in NOT_INSTALLED:
        pytest.skip(f"{tool.name} is not here")
    if version is None:
        absent(tool.name)
    note_client(record_property, tool.name, version)
    argv = tool.command(unaided(product, tool.host))
    environment = {name: value for name, value in product.environment.items() if name != "SSL_CERT_FILE"}
    environment["npm_config_globalconfig"] = os.devnull  # a cafile there counts more than Node's own roots
    ends = []
    for variables in ({}, {tool.variable: product.environment["SSL_CERT_FILE"]}):
        done = subprocess.run(
            argv, cwd=product.folder, env=environment | variables, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=90,
        )  # fmt: skip
        ends.append(
            (done.returncode, [one for one in house.arrived() if f" {tool.host} " in one], done.stdout + done.stderr)
        )
    print("WITHOUT", ends[0])
    print("WITH", ends[1])
    assert ends[0][1] == [], ends[0][2]
    assert ends[1][0] == 0, ends[1][2]
    assert ends[1][1]


def test_grpc_trusts_by_its_variable(product: Product, lab: Lab, tmp_path: Path) -> None:
    """INS-2: gRPC's C core with its default credentials."""
    lab.dns.set("a.test", A=[ALLOWED])
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    script = (
        "import grpc, sys\n"
        "with grpc.secure_channel('a.test:443', grpc.ssl_channel_credentials()) as channel:\n"
        "    try:\n        print(channel.unary_unary('/tide.Test/Echo')(b'hello', timeout=20).decode())\n"
        "    except grpc.RpcError as error:\n        sys.exit(error.details())\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(product.home)}
    said = []
    with servers.echo_by_grpc(lab.listener(ALLOWED, 443), tmp_path, authority.issue_cert("a.test")):
        for variables in ({}, {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(tmp_path / "ca.pem")}):
            done = subprocess.run(
                [sys.executable, "-c", script], env=environment | variables, capture_output=True, text=True, check=False
            )
            said.append((done.returncode, done.stdout))
            assert done.returncode == 0 or "CERTIFICATE_VERIFY_FAILED" in done.stderr
    assert said == [(1, ""), (0, "hello\n")]
