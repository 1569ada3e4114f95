"""tidegate.runtime.ssh_tools: OpenSSH's own tools, asked in a folder of the test's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ssh_server import make_key, need
from tidegate.model.errors import StartError
from tidegate.runtime import ssh_tools
from tidegate.wire.ssh_agent import REQUEST_IDENTITIES, read_identities


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a run, deeper than a socket's path may be, with an agent of ours in it."""
    need()
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.chdir(deep)
    pid = ssh_tools.start_agent()
    yield deep
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _listed() -> list[tuple[bytes, bytes]]:
    answer = ssh_tools.ask(ssh_tools.connect(ssh_tools.SOCKET), bytes((REQUEST_IDENTITIES,)), last=True)
    return read_identities(answer) or []


def _known(folder: Path, *names: str) -> tuple[str, ...]:
    host_key = make_key(folder / f"host-{len(names)}")
    (folder / "known").write_text("".join(f"{name} {host_key}\n" for name in names))
    return (str(folder / "known"),)


@pytest.mark.parametrize("hashed", [False, True])
def test_a_key_is_bound_to_known_hosts(folder: Path, hashed: bool) -> None:
    """HLD-14: names in clear or hashed; the key that is served is the one of the file."""
    public = make_key(folder / "id")
    known = _known(folder, "a.test", "[a.test]:2222")
    if hashed:
        ssh_tools._run("ssh-keygen", "-q", "-H", "-f", known[0])
    made = ssh_tools.add_key(str(folder / "id"), ("a.test", "git@[a.test]:2222"), known, "")
    assert made.blob == made.check == ssh_tools.public_blob(public.encode())
    assert made.hosts == "a.test, git@[a.test]:2222"
    with pytest.raises(StartError, match=r"no host key of b\.test is known"):
        ssh_tools.add_key(str(folder / "id"), ("a.test", "b.test"), known, "")
    with pytest.raises(StartError, match=r"no host key of a\.test is known") as raised:
        ssh_tools.add_key(str(folder / "id"), ("[a.test]:99",), known, "")
    assert raised.value.fix.startswith("connect once (ssh -p 99 a.test)")


def test_a_key_under_two_names_is_refused(folder: Path) -> None:
    """HLD-14: the second would take the hosts of the first away; another key beside it is fine."""
    for name in ("id", "other"):
        make_key(folder / name)
    (folder / "copy").write_bytes((folder / "id").read_bytes())
    (folder / "copy").chmod(0o600)
    known = _known(folder, "a.test")
    made = [ssh_tools.add_key(str(folder / name), ("a.test",), known, "") for name in ("id", "other")]
    assert made[0].blob != made[1].blob
    with pytest.raises(StartError, match="is named in two ways"):
        ssh_tools.add_key(str(folder / "copy"), ("a.test",), known, "")


def test_a_key_of_the_callers_agent_gets_one_that_stands_for_it(folder: Path) -> None:
    """HLD-14: our agent gets a key made up for this run, and its file is gone."""
    public = make_key(folder / "id")
    known = _known(folder, "a.test")
    # The agent of this test is the caller's as well.
    ssh_tools._run("ssh-add", "-q", str(folder / "id"))
    blob = ssh_tools.public_blob(public.encode())
    for key in (f"{folder}/id.pub", ssh_tools.fingerprint(blob)):
        made = ssh_tools.add_key(key, ("a.test",), known, ssh_tools.SOCKET)
        assert made.blob == blob
        assert made.check != blob
        assert made.check in {one for one, _ in _listed()}
        assert not list(folder.glob("check*"))


def test_an_encrypted_key_needs_an_agent_that_holds_it(folder: Path) -> None:
    """HLD-14: nobody is asked for a passphrase; without an agent the line says what to do."""
    make_key(folder / "id", passphrase="secret")
    with pytest.raises(StartError, match="is encrypted, and your ssh agent does not hold it") as raised:
        ssh_tools.add_key(str(folder / "id"), ("a.test",), _known(folder, "a.test"), "")
    assert raised.value.fix == f"ssh-add {folder}/id"


def test_what_is_no_key(folder: Path) -> None:
    """HLD-7: one line of ours for what OpenSSH's tools say in many."""
    (folder / "text").write_text("no key\n")
    with pytest.raises(StartError, match="is not an ssh key"):
        ssh_tools.add_key(str(folder / "text"), ("a.test",), (), "")
    make_key(folder / "open")
    (folder / "open").chmod(0o644)
    with pytest.raises(StartError, match=r"Permissions 0644 for '.*' are too open"):
        ssh_tools.add_key(str(folder / "open"), ("a.test",), _known(folder, "a.test"), "")
    (folder / "broken").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n")
    (folder / "broken").chmod(0o600)
    with pytest.raises(StartError):
        ssh_tools.add_key(str(folder / "broken"), ("a.test",), _known(folder, "c.test", "d.test"), "")


def test_public_keys_and_fingerprints() -> None:
    """As ssh-keygen -l prints them."""
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl github"
    blob = ssh_tools.public_blob(line.encode())
    assert ssh_tools.fingerprint(blob) == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"
    for wrong in (b"", b"ssh-ed25519", b"ssh-rsa " + line.split()[1].encode(), b"ssh-ed25519 !!!!"):
        assert ssh_tools.public_blob(wrong) == b""


def test_known_hosts_files_are_those_that_are_there(tmp_path: Path) -> None:
    """ssh(1), FILES."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts2").touch()
    (tmp_path / ".ssh" / "known_hosts").mkdir()
    own = [path for path in ssh_tools.known_hosts_files(str(tmp_path)) if not path.startswith("/etc/")]
    assert own == [f"{tmp_path}/.ssh/known_hosts2"]
    assert all(path.startswith("/etc/") for path in ssh_tools.known_hosts_files(""))


def test_a_message_is_whole_or_none() -> None:
    """draft-ietf-sshm-ssh-agent section 3: what is too long, empty or cut is no message."""
    import socket

    for data, message in (
        (b"\0\0\0\3abc", b"abc"),
        (b"\0\0\0\3ab", None),
        (b"\0\0\0\0", None),
        (b"\0\4\0\1x", None),
        (b"\0\0", None),
        (b"", None),
    ):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(data)
            theirs.shutdown(socket.SHUT_WR)
            assert ssh_tools.next_message(ours) == message


def test_a_revoked_host_key_is_none(folder: Path) -> None:
    """HLD-14: ssh refuses such a key for whatever host, though another line names it; its neighbours stay known."""
    revoked, good = make_key(folder / "one"), make_key(folder / "two")
    make_key(folder / "id")
    plain, marked = folder / "plain", folder / "marked"
    plain.write_text(f"a.test {revoked}\nb.test {good}\n")
    marked.write_text(f"# a remark\n\n@revoked * {revoked}\n")
    assert ssh_tools.without_revoked((str(plain),)) == (str(plain),)
    known = ssh_tools.without_revoked((str(plain), str(marked)))
    with pytest.raises(StartError, match=r"no host key of a\.test is known"):
        ssh_tools.add_key(str(folder / "id"), ("a.test",), known, "")
    assert ssh_tools.add_key(str(folder / "id"), ("b.test",), known, "").hosts == "b.test"
    with pytest.raises(StartError, match="cannot be read"):
        ssh_tools.without_revoked((str(folder / "missing"),))
