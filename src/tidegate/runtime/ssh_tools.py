"""OpenSSH's own tools, as the filtered agent of a task uses them: ssh-agent, ssh-add and ssh-keygen.

Rules of the file: what a tool says is turned into one line of ours; no private key is read here but by those tools; all
of it in the folder that is this process's own (the agent's socket is named without a path: that may be longer than a
socket's path can be).

ssh-agent(1), ssh-add(1), draft-ietf-sshm-ssh-agent section 3.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path

from tidegate.holds import capabilities
from tidegate.model.errors import StartError
from tidegate.model.value import Value
from tidegate.wire import ssh_agent as wire

PATIENCE = 10.0  # seconds for the tools that set up the agent
SOCKET, CHECK, KNOWN = "agent", "check", "known"  # names in the folder of this run
FINGERPRINT = "SHA256:"
_LARGEST_KEY = 65536


class Served(Value):
    """One key: what the task sees of it, and what our agent signs with for it, the same or one made up."""

    blob: bytes
    comment: bytes
    check: bytes
    name: str
    hosts: str


def start_agent() -> int:
    """Start an ssh-agent that ends with this process, and return its pid when it answers.

    Raises:
        StartError: when there is none, or it does not answer.
    """
    pid = os.fork()
    if pid == 0:
        try:
            capabilities.die_with_parent()  # kept over exec: without new privileges set-gid means nothing
            os.execvp("ssh-agent", ["ssh-agent", "-D", "-a", SOCKET])  # noqa: S606  no shell is meant
        finally:
            os._exit(127)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            ask(connect(SOCKET), bytes((wire.REQUEST_IDENTITIES,)), last=True)
        except OSError:
            if os.waitpid(pid, os.WNOHANG)[0]:
                break
            time.sleep(0.005)
        else:
            return pid
    raise StartError("no ssh-agent could be started", fix="install OpenSSH's client (openssh-client)", code="ssh-key")


def add_key(key: str, hosts: tuple[str, ...], known: tuple[str, ...], caller: str) -> Served:
    """Put one key into our agent, bound to its hosts: the key of a file, or one made up that stands for a caller's.

    Raises:
        StartError: with what is missing.
    """
    path, blob = _find(key, caller)
    names = ", ".join(hosts)
    before = {one for one, _ in _keys_of(SOCKET)}
    if path and _add(path, hosts, known):
        blob, comment = _added(before, key)
        return Served(blob, comment, blob, key, names)
    held = dict(_keys_of(caller))
    if blob not in held:
        why = "is encrypted, and your ssh agent does not hold it" if path else "is not held by your ssh agent"
        fix = f"ssh-add {path}" if path else "add it with ssh-add, or name the file of the private key"
        raise StartError(f"--ssh-key: the key {key} {why}", fix=fix, code="ssh-key")
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", CHECK)
    _add(CHECK, hosts, known)
    for name in (CHECK, f"{CHECK}.pub"):
        os.unlink(name)
    return Served(blob, held[blob], _added(before, key)[0], key, names)


def _added(before: set[bytes], key: str) -> tuple[bytes, bytes]:
    """Return what our agent holds beside these.

    Raises:
        StartError: when that is nothing: adding a key again took its hosts of before away.
    """
    for blob, comment in _keys_of(SOCKET):
        if blob not in before:
            return blob, comment
    raise StartError(
        f"--ssh-key: the key {key} is named in two ways",
        fix="name it in one, once for each of its hosts",
        code="ssh-key",
    )


def _find(key: str, caller: str) -> tuple[str, bytes]:
    """Return the file of the private key and the public key, as far as they are known.

    Raises:
        StartError: when nothing is known of either.
    """
    if key.startswith(FINGERPRINT):
        return "", next((blob for blob, _ in _keys_of(caller) if fingerprint(blob) == key), b"")
    try:
        with open(key, "rb") as file:
            text = file.read(_LARGEST_KEY)
    except OSError as error:
        raise StartError(
            f"--ssh-key: {key} cannot be read: {os.strerror(error.errno or 0)}", fix="name a key file", code="ssh-key"
        ) from None
    if b"PRIVATE KEY" in text:
        try:
            with open(f"{key}.pub", "rb") as file:
                return key, public_blob(file.read(_LARGEST_KEY))
        except OSError:
            return key, b""
    blob = public_blob(text)
    if not blob:
        raise StartError(f"--ssh-key: {key} is not an ssh key", fix="name a private or public key file", code="ssh-key")
    return "", blob


def public_blob(line: bytes) -> bytes:
    """Return the key of a public key file, as agents name it; empty where it is none."""
    words = line.split(None, 2)
    try:
        blob = b64decode(words[1], validate=True)
    except (IndexError, ValueError):
        return b""
    return blob if wire.key_type(blob) == words[0] else b""


def fingerprint(blob: bytes) -> str:
    """Return a key's fingerprint as `ssh-add -l` prints it."""
    return FINGERPRINT + b64encode(sha256(blob).digest()).decode().rstrip("=")


def _add(path: str, hosts: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Add a key to our agent; False where it is encrypted.

    Raises:
        StartError: where it cannot be added for another reason.
    """
    words = ["ssh-add", "-q"]
    for host in hosts:
        words += ["-h", host]
    for file in known:
        words += ["-H", file]
    said = _run(*words, path, fails=True)
    if said is None:
        return True
    if "No host keys found" in said:
        name = said.partition('"')[2].partition('"')[0]
        host, _, port = name.lstrip("[").partition("]:")
        words = ["-p", port, host] if port else [host]
        place = " ".join(words)
        raise StartError(
            f"--ssh-key: no host key of {host} is known, so a login there cannot be told from one elsewhere",
            fix=f"connect once (ssh {place}), or compare what `ssh-keyscan {place}` prints and add it to known_hosts",
            code="ssh-key",
        )
    if "unknown option" in said or "usage:" in said:
        raise StartError(
            "--ssh-key: ssh-add here cannot bind a key to a host", fix="install OpenSSH 8.9 or newer", code="ssh-key"
        )
    lines = [line.strip() for line in said.splitlines() if line.strip() and line[0] != "@"]
    if not lines or lines[0].startswith("Enter passphrase"):
        return False
    raise StartError(f"--ssh-key: {lines[0]}", fix="name a private key that ssh itself would use", code="ssh-key")


def _run(*words: str, fails: bool = False) -> str | None:
    """Run a tool of OpenSSH; None where it went well, else what it said.

    Raises:
        StartError: where it is missing, hangs, or fails and `fails` is not set.
    """
    environment = {**os.environ, "SSH_AUTH_SOCK": SOCKET, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise StartError(f"{words[0]} cannot be run", fix="install OpenSSH's client", code="ssh-key") from None
    if not done.returncode:
        return None
    if fails:
        return done.stderr
    raise StartError(f"{words[0]}: {done.stderr.strip()[:200]}", code="ssh-key")


def _keys_of(path: str) -> list[tuple[bytes, bytes]]:
    if not path:
        return []
    try:
        agent = connect(path)
        agent.settimeout(PATIENCE)
        return wire.read_identities(ask(agent, bytes((wire.REQUEST_IDENTITIES,)), last=True)) or []
    except OSError:
        return []


def connect(path: str) -> socket.socket:
    """Connect to an agent.

    Raises:
        OSError: when it is not there.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(path)
    except BaseException:
        made.close()
        raise
    return made


def ask(agent: socket.socket, message: bytes, *, last: bool = False) -> bytes:
    """Ask an agent and return its answer; `last` closes the connection.

    Raises:
        OSError: when it does not answer in one piece.
    """
    try:
        agent.sendall(wire.framed(message))
        answer = next_message(agent)
        if answer is None:
            raise ConnectionResetError
        return answer
    finally:
        if last:
            agent.close()


def next_message(peer: socket.socket) -> bytes | None:
    """Return the next message without its length; None at the end, or where it is too long."""
    head = _exactly(peer, 4)
    length = int.from_bytes(head, "big")
    if len(head) < 4 or not 0 < length <= wire.MAX_MESSAGE:
        return None
    body = _exactly(peer, length)
    return body if len(body) == length else None


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            break
        data += part
    return bytes(data)


def known_hosts_files(home: str) -> tuple[str, ...]:
    """Return the files in which ssh looks for host keys, those that are there."""
    places = [Path(home, ".ssh", name) for name in ("known_hosts", "known_hosts2")] if home else []
    places += [Path("/etc/ssh", name) for name in ("ssh_known_hosts", "ssh_known_hosts2")]
    return tuple(str(path) for path in places if path.is_file())


def without_revoked(files: tuple[str, ...]) -> tuple[str, ...]:
    """Return these known_hosts files, or one made of them without the keys that a line of theirs revokes.

    ssh refuses such a key for whatever host; ssh-add looks for no `@revoked` and would bind to it (sshd(8)).

    Raises:
        StartError: when one cannot be read.
    """
    try:
        lines = [line for file in files for line in Path(file).read_bytes().splitlines()]
    except OSError as error:
        raise StartError(
            f"--ssh-key: {error.filename} cannot be read: {os.strerror(error.errno or 0)}",
            fix="make it readable, or move it away",
            code="ssh-key",
        ) from None
    revoked = {_host_key(line) for line in lines if line.lstrip().startswith(b"@revoked")}
    if not revoked:
        return files
    Path(KNOWN).write_bytes(b"".join(line + b"\n" for line in lines if _host_key(line) not in revoked))
    return (KNOWN,)


def _host_key(line: bytes) -> bytes:
    """The key of one line of known_hosts as it is written; empty where there is none."""
    words = line.split()
    at = 3 if words and words[0].startswith(b"@") else 2
    return words[at] if len(words) > at else b""
