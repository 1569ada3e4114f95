"""Clients that meet a question: one row each (ASK-3). What they do is in docs/questions.md, made from these rows.

A row stands on that of the same client elsewhere in this folder: its version, its command, and what it prints when it
is refused. `hurried` makes it give up after two seconds, or has it ended by whoever started it. `alone` says for how
long it waits when nobody tells it anything; that was measured once with each, by hand, since it takes minutes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.clients.kit import CAPTURE, PROXY, Client
from tests.clients.package_managers import PACKAGE_MANAGERS
from tests.clients.registries import NAME
from tests.clients.services import SERVICES
from tests.clients.table import FETCHERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.clients.kit import Place

ENOUGH = "enough"  # a file of the task's folder: whoever waits for a client without a time-out of its own ends it
SCHEMES = {"git over https": "git"}  # what the row's refusals are found by; else https
_ROWS = {row.name: row for row in (*FETCHERS, *PACKAGE_MANAGERS, *SERVICES)}


@dataclass(frozen=True)
class Meeting:
    """One row."""

    client: Client
    command: Callable[[Place], Sequence[str]]
    hurried: Callable[[Place], Sequence[str]]
    got: str  # a file that it makes when it was let through
    meanwhile: str  # what it has printed while it waits
    gives_up: dict[str, str]  # by way: a line that it prints when it gave up, '' for nothing
    alone: str
    retry: str

    def __str__(self) -> str:
        """Its name, in a test's."""
        return str(self.client)

    @property
    def scheme(self) -> str:
        """What the refusals of its client are found by."""
        return SCHEMES.get(self.client.name, "https")


def _ended_and_run_again(argv: Sequence[str]) -> list[str]:
    script = f'setsid "$@" & until [ -e {ENOUGH} ]; do sleep 0.1; done; kill -- -$!; wait; sleep 1; "$@"'
    return ["sh", "-c", script, "sh", *argv]


def _curl(p: Place) -> list[str]:
    return ["curl", "-sSf", "-o", "got", p.url]


def _pip(p: Place, *options: str) -> list[str]:
    return [sys.executable, "-m", "pip", "--no-input", "download", "--no-cache-dir", *options, "-i", f"{p.url}simple/",
            "-d", "got", NAME]  # fmt: skip


def _npm(p: Place) -> list[str]:
    return ["npm", "install", "--no-save", f"--registry={p.url}", NAME]


def _git(p: Place) -> list[str]:
    return ["git", "clone", "-q", f"https://{p.host}/git/one.git", "cloned"]


_PIP_AGAIN = "WARNING: Retrying (Retry(total=4, …)) after connection broken by '…': /simple/tidetest/"
_CURL_HURRIED = ("--connect-timeout", "2", "--retry", "9", "--retry-all-errors", "--retry-delay", "1")

MEETINGS: tuple[Meeting, ...] = (
    Meeting(
        _ROWS["curl"], _curl, lambda p: [*_curl(p), *_CURL_HURRIED], "got", "",
        {PROXY: "curl: (28) Proxy CONNECT aborted due to timeout", CAPTURE: "curl: (28) SSL connection timeout"},
        "5 minutes (`--connect-timeout`, which counts until TLS is there)",
        "none by itself: run it again, or `--retry 9 --retry-all-errors`",
    ),
    Meeting(
        _ROWS["pip"], _pip, lambda p: _pip(p, "--timeout", "2"), f"got/{NAME}-1.0-py3-none-any.whl",
        "Looking in indexes: https://a.test/simple/",
        {PROXY: _PIP_AGAIN, CAPTURE: _PIP_AGAIN},
        "15 seconds a try (`--timeout`), six tries (`--retries`): 97 seconds in all",
        "by itself",
    ),
    Meeting(
        _ROWS["npm"], _npm, lambda p: _ended_and_run_again(_npm(p)), f"node_modules/{NAME}/package.json", "",
        {PROXY: "", CAPTURE: ""},
        "longer than 9 minutes: `fetch-timeout` does not count before there is a connection",
        "run it again",
    ),
    Meeting(
        _ROWS["git over https"], _git, lambda p: _ended_and_run_again(_git(p)), "cloned/file", "",
        {PROXY: "", CAPTURE: ""},
        "5 minutes, then `fatal: unable to access …: SSL connection timeout`; `http.lowSpeedTime` does not count",
        "run it again",
    ),
)  # fmt: skip
