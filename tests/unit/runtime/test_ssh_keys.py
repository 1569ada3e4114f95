"""tidegate.runtime.ssh_keys; the whole of it is in tests/unit/cli/test_run_ssh_key.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ssh_server import need
from tidegate.model.errors import StartError, UsageError
from tidegate.runtime.ssh_keys import KeyUse, SshKeys, private_files, read_ssh_key, shut


@pytest.mark.parametrize(
    ("text", "key", "host"),
    [
        ("/k:a.test", "/k", "a.test"),
        ("/k:A.Test.", "/k", "a.test"),
        ("/k:a.test:22", "/k", "a.test"),
        ("/k:a.test:2222", "/k", "[a.test]:2222"),
        ("/k:git@a.test", "/k", "git@a.test"),
        ("/k:git@a.test:2222", "/k", "git@[a.test]:2222"),
        ("/with:colon/k:a.test", "/with:colon/k", "a.test"),
        ("/with[b]/k:a.test", "/with[b]/k", "a.test"),
        ("~/k:a.test", "/home/u/k", "a.test"),
        ("SHA256:abc/+d:a.test", "SHA256:abc/+d", "a.test"),
        ("/k:1.2.3.4", "/k", "1.2.3.4"),
        ("/k:[2600:beef::1]", "/k", "2600:beef::1"),
        ("/k:git@[2600:beef::1]:2222", "/k", "git@[2600:beef::1]:2222"),
    ],
)
def test_a_key_and_a_host(text: str, key: str, host: str) -> None:
    """HLD-14: the host in the form of known_hosts."""
    assert read_ssh_key(text, "/home/u") == KeyUse(key, host)


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "/k", "/k:", ":a.test", "/k:a.test:0", "/k:a.test:65536", "/k:a.test:9999999", "/k:@a.test",
        "/k:a@b@a.test", "/k:a b@a.test", "/k:*.test", "/k:a.test,b.test", "/k:a.test>b.test", "/k:[::1", "/k:[::1]x",
        "/k:[::1]:", "/k:[::1]:x", "/k:[x]", "/k:\uff41.test", "/k:-oProxyCommand=x",
    ],
)  # fmt: skip
def test_what_names_none(text: str) -> None:
    """HLD-14: no wildcard, no path of several hosts, nothing that a tool could read as an option."""
    with pytest.raises(UsageError):
        read_ssh_key(text, "/home/u")


def test_names_and_ports() -> None:
    """What the gate calls the host."""
    for host, name, port in (
        ("a.test", "a.test", 22),
        ("git@[a.test]:2222", "a.test", 2222),
        ("2600:beef::1", "2600:beef::1", 22),
        ("[2600:beef::1]:23", "2600:beef::1", 23),
    ):
        use = KeyUse("/k", host)
        assert (use.name, use.port) == (name, port)


def test_the_private_half_is_what_is_hidden(tmp_path: Path) -> None:
    """HLD-14: also where the public half was named; what is not there is not hidden."""
    for name in ("id", "id.pub"):
        (tmp_path / name).touch()
    keys = (str(tmp_path / "id"), str(tmp_path / "id.pub"), str(tmp_path / "none.pub"), "SHA256:x")
    assert private_files(KeyUse(key, "a.test") for key in keys) == (str(tmp_path / "id"),)


def test_a_refused_host_of_a_key_is_said() -> None:
    """HLD-14: a key opens no host; other refusals, and what passed, are not its affair."""
    rows = [
        ("a.test", 22, "deny", "refused", "", "", "", "", "", "runtime", 1, 0, 0),
        ("a.test", 80, "deny", "refused", "", "", "", "", "", "runtime", 1, 0, 0),
        ("b.test", 22, "allow", "captured", "", "", "", "", "", "runtime", 1, 0, 0),
    ]
    uses = (KeyUse("/k", "a.test"), KeyUse("/k", "git@a.test"), KeyUse("/k", "b.test"))
    assert shut(uses, rows) == ("ssh-key: --ssh-key opens no host: for a.test there is --allow a.test:22",)


def test_what_goes_wrong_over_there_is_a_start_error_here(tmp_path: Path) -> None:
    """HLD-7: exit 78 with what is missing; the process and its folder are gone."""
    need()
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(StartError, match="cannot be read") as raised:
        SshKeys((KeyUse(str(tmp_path / "none"), "a.test"),), str(folder), {"HOME": str(tmp_path)})
    assert raised.value.exit_status == 78
    assert not folder.exists()
