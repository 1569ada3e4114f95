"""The generated module and the data files it is made of."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tidegate.model.rule import REGISTRY
from tidegate.policy import presets
from tidegate.policy.presets.compiled import GROUPS, HOSTS, READS
from tidegate.policy.rules import parse_rule

FOLDER = os.path.dirname(presets.__file__)
FILES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".yaml"))
SCRIPT = os.path.join(os.path.dirname(__file__), *[os.pardir] * 4, "scripts", "compile-presets")


def load(name: str) -> dict[str, Any]:
    """Read one data file."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        loaded: dict[str, Any] = yaml.safe_load(file)
    return loaded


def test_it_is_what_the_files_say() -> None:
    """What runs use is what the data files hold (POL-11)."""
    loaded = [load(name) for name in FILES]
    assert {one["name"]: tuple(host["host"] for host in one["hosts"]) for one in loaded} == HOSTS
    groups: dict[str, list[str]] = {}
    for one in sorted(loaded, key=lambda one: str(one["name"])):
        if one["group"]:
            groups.setdefault(one["group"], []).append(one["name"])
    assert {name: tuple(names) for name, names in groups.items()} == GROUPS
    assert subprocess.run([sys.executable, SCRIPT, "--check"], check=False).returncode == 0


@pytest.mark.parametrize("name", FILES)
def test_every_host_has_its_reason(name: str) -> None:
    """Each host is an exact name with a reason, a source, and a table of what reads there (POL-11)."""
    one = load(name)
    assert set(one) == {"name", "about", "group", "hosts"}
    assert one["name"] == name.removesuffix(".yaml")
    for host in one["hosts"]:
        assert set(host) == {"host", "why", "source", "read"}
        assert parse_rule(host["host"]).key == host["host"]
        assert host["why"]
        assert host["source"].startswith("https://")
        for entry in host["read"]:
            assert set(entry["methods"]) <= {"GET", "HEAD", "POST"}
            assert all(path.startswith("/") for path in entry.get("paths", ()))
            if "POST" in entry["methods"]:
                assert entry["paths"]
                assert all("*" not in path for path in entry["paths"])  # only what is known to read


def test_every_host_has_its_table() -> None:
    """INS-7: what reads there is what the file says; nothing else is in the table."""
    said = {
        host["host"]: [(entry["methods"], entry.get("paths", [])) for entry in host["read"]]
        for name in FILES
        for host in load(name)["hosts"]
    }
    assert {
        host: [(list(methods), list(paths)) for kind, methods, paths in limits[2][0] if kind == REGISTRY]
        for host, limits in READS.items()
    } == said


def test_no_host_only_publishes() -> None:
    """Hosts that exist to upload are in no preset."""
    hosts = {host for names in HOSTS.values() for host in names}
    assert not hosts & {"upload.pypi.org", "www.nuget.org", "central.sonatype.com", "oss.sonatype.org", "github.com"}
