"""The programs that the client tests drive: are they here, which version, and a line about it in the test report.

    def test_it(client):
        curl = client("curl")       # its path; the test is skipped, with the reason, where it is missing

The plugin half (tests/conftest.py loads it) prints the versions at the end of a run, also under xdist.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = "client"

# How each program is asked for its version; the first dotted number in the answer is it.
_PROGRAMS: dict[str, tuple[str, ...]] = {
    "cargo": ("cargo", "--version"),
    "curl": ("curl", "--version"),
    "git": ("git", "--version"),
    "java": ("java", "-version"),
    "node": ("node", "--version"),
    "npm": ("npm", "--version"),
    "pip": (sys.executable, "-m", "pip", "--version"),
    "python": (sys.executable, "--version"),
    "ssh": ("ssh", "-V"),
    "uv": ("uv", "--version"),
    "wget": ("wget", "--version"),
}
_LIBRARIES = ("requests", "httpx")


def program_version(argv: tuple[str, ...], environment: dict[str, str] | None = None) -> str | None:
    """Return the version a program says it has, None where it does not run."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL, env=environment
        )
    except OSError:
        return None
    found = re.search(r"\d+\.\d+[.\dp]*", done.stdout + done.stderr)
    return found[0] if done.returncode == 0 and found else None


def _library_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@pytest.fixture(scope="session")
def _versions() -> dict[str, str | None]:
    return {}


@pytest.fixture
def client(record_property: Callable[[str, object], None], _versions: dict[str, str | None]) -> Callable[[str], str]:
    """Return a function: the path of a program (or the name of a library), noting its version; skips without it."""

    def find(name: str) -> str:
        argv = _PROGRAMS.get(name)
        if name not in _versions:
            _versions[name] = program_version(argv) if argv else _library_version(name)
        version = _versions[name]
        if version is None:
            pytest.skip(f"{name} is not here")
        record_property(_KEY, f"{name} {version}")
        return (shutil.which(argv[0]) or name) if argv else name

    return find


def note_client(record_property: Callable[[str, object], None], name: str, version: str) -> None:
    """Note a program that a test brought itself."""
    record_property(_KEY, f"{name} {version}")


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparing."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which clients were driven."""
    seen = {
        str(value)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == _KEY
    }
    if seen:
        terminalreporter.section("clients driven through the gate")
        terminalreporter.line(", ".join(sorted(seen)))


def trusting(ca_file: str) -> dict[str, str]:
    """Return the variables that make each client trust one authority, and nothing of this machine's configuration."""
    return {
        "CURL_CA_BUNDLE": ca_file,
        "SSL_CERT_FILE": ca_file,
        "GIT_SSL_CAINFO": ca_file,
        "REQUESTS_CA_BUNDLE": ca_file,
        "PIP_CERT": ca_file,
        "NODE_EXTRA_CA_CERTS": ca_file,
        "npm_config_cafile": ca_file,
        "CARGO_HTTP_CAINFO": ca_file,
        "DENO_CERT": ca_file,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_update_notifier": "false",
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_fetch_retries": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
