"""A real sshd for tests: one process a connection (`sshd -i`), on a listening socket of the lab."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from tests.accounts import account, need_account

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = ("ssh", "ssh-keygen", "ssh-agent", "ssh-add", "sshd")
USER = account()


def need() -> None:
    """Skip where OpenSSH is not installed, or would not serve this user."""
    need_account()
    missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        pytest.skip(f"not here: {', '.join(missing)} (scripts/setup as root installs them)")


def make_key(path: Path, *, kind: str = "ed25519", passphrase: str = "") -> str:
    """Make a key pair at `path` and return the public half, type and base64."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)], check=True, timeout=60
    )
    return " ".join(path.with_name(f"{path.name}.pub").read_text().split()[:2])


class SshServer:
    """Serves until `close`. `logins` counts the connections; sshd's own log is in `log`."""

    def __init__(self, folder: Path, listener: socket.socket, authorized: str, *, host_key: str = "ed25519") -> None:
        folder.mkdir()
        self.host_key = make_key(folder / "host_key", kind=host_key)
        (folder / "authorized").write_text(authorized + "\n")
        self.log = folder / "log"
        (folder / "config").write_text(
            f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
            "PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE\n"
            "PidFile none\nUseDNS no\nAllowAgentForwarding yes\n"
        )
        if not os.geteuid():
            os.makedirs("/run/sshd", exist_ok=True)
        self._argv = [
            shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin") or "sshd",
            "-i", "-f", f"{folder}/config", "-E", str(self.log),
        ]  # fmt: skip
        self._listener = listener
        self._running: list[subprocess.Popen[bytes]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                peer = self._listener.accept()[0]
            except OSError:
                return
            with peer:
                self._running.append(
                    subprocess.Popen(self._argv, stdin=peer, stdout=peer, stderr=subprocess.DEVNULL, close_fds=True)
                )

    def close(self) -> None:
        """Stop listening and end what is open."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()
        for process in self._running:
            process.kill()
            process.wait()
