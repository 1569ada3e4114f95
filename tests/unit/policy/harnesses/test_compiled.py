"""The generated module and the data files it is made of."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tidegate.policy import harnesses
from tidegate.policy.harnesses.compiled import HARNESSES
from tidegate.policy.harnesses.harness_file import load_harness

FOLDER = os.path.dirname(harnesses.__file__)
FILES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".yaml"))
SCRIPT = os.path.join(os.path.dirname(__file__), *[os.pardir] * 4, "scripts", "compile-harnesses")


def load(name: str) -> harnesses.Harness:
    """Read one data file as a user's own would be."""
    with open(os.path.join(FOLDER, name), "rb") as file:
        return load_harness(file.read(), name)


def test_it_is_what_the_files_say() -> None:
    """What runs use is what the data files hold (POL-12)."""
    assert [name.removesuffix(".yaml") for name in FILES] == list(HARNESSES)
    for file in FILES:
        harness = load(file)
        assert HARNESSES[harness.name] == (
            harness.about,
            harness.command,
            harness.proxy_aware,
            tuple((host.rule, host.verified, host.only_key) for host in harness.hosts),
            harness.model_api,
        )
    assert subprocess.run([sys.executable, SCRIPT, "--check"], check=False).returncode == 0


@pytest.mark.parametrize("name", FILES)
def test_every_host_says_what_it_is_for_and_how_that_is_known(name: str) -> None:
    """Each is an exact name on port 443 with a reason and a source; a verified one names the version (POL-12)."""
    harness = load(name)
    assert harness.about
    for host in harness.hosts:
        assert host.rule.endswith(":443")
        assert "*" not in host.rule
        assert host.reference.startswith("https://")
        assert host.why
        assert ("(seen with " in host.why) is host.verified


def test_those_that_there_are() -> None:
    """Claude Code, Codex and Gemini CLI have their model's API verified, the others none (POL-12)."""
    assert set(HARNESSES) == {"aider", "claude", "codex", "cursor", "droid", "gemini", "opencode"}
    apis = {name: [host.rule for host in harnesses.built_in(name).own_model_api] for name in HARNESSES}  # type: ignore[union-attr]
    assert apis == {
        "aider": [],
        "claude": ["api.anthropic.com:443"],
        "codex": ["api.openai.com:443", "chatgpt.com:443"],
        "cursor": [],
        "droid": [],
        "gemini": ["generativelanguage.googleapis.com:443", "cloudcode-pa.googleapis.com:443"],
        "opencode": [],
    }


def test_no_two_share_a_command() -> None:
    """A command is at most one agent, so that recognising it has one answer."""
    commands = [found[1] for found in HARNESSES.values()]
    assert len(set(commands)) == len(commands)
