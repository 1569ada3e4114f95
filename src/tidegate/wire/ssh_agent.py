"""What an ssh client may ask of a filtered agent, read from bytes (HLD-14).

draft-ietf-sshm-ssh-agent sections 3 and 5, OpenSSH's PROTOCOL.agent section 1 (session-bind@openssh.com), RFC 4252
section 7 and OpenSSH's PROTOCOL section 3.1 (publickey-hostbound-v00@openssh.com). Rules of the file:

* Three requests are known: which keys there are, the binding of a connection to an ssh session, and a signature. All
  else is None, and so is what is not read whole to its last byte.
* A signature may be asked only over what RFC 4252 says of a login by public key. Whatever else could be signed (files
  by `ssh-keygen -Y`, git commits, other protocols) never has this form.

It verifies no signature, and does not know which session is with which host: an ssh agent of OpenSSH is asked that.
"""

from __future__ import annotations

from tidegate.model.value import Value

MAX_MESSAGE = 256 * 1024  # OpenSSH's own bound

FAILURE = b"\x05"
SUCCESS = b"\x06"
REQUEST_IDENTITIES = 11
IDENTITIES_ANSWER = 12
SIGN_REQUEST = 13
SIGN_RESPONSE = 14
EXTENSION = 27
SESSION_BIND = b"session-bind@openssh.com"

_USERAUTH_REQUEST = 50
_SERVICE = b"ssh-connection"
_METHOD = b"publickey"
_HOSTBOUND = b"publickey-hostbound-v00@openssh.com"
_FLAGS = frozenset((0, 2, 4))  # SSH_AGENT_RSA_SHA2_256 and _512


class Identities(Value):
    """Which keys are there?"""


class Bind(Value):
    """This connection is about an ssh session: what proves it is for an ssh agent to read. `forwarded`: not for us."""

    forwarded: bool


class Sign(Value):
    """Sign with the key of this blob, over a login: its fields, the key's own left out. `host_key` may be empty."""

    key: bytes
    flags: int
    session: bytes
    user: bytes
    method: bytes
    algorithm: bytes
    host_key: bytes


class _Fields:
    """Takes one field after another; ValueError where there is none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ValueError
        part, self._at = self._data[self._at : end], end
        return part

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def text(self) -> bytes:
        return self.take(self.number())

    def end(self) -> None:
        if self._at != len(self._data):
            raise ValueError


def read_request(message: bytes) -> Identities | Bind | Sign | None:
    """Return what a message (without its length) asks for; None for all that is nobody's but the key's owner's."""
    fields = _Fields(message)
    try:
        kind = fields.take(1)[0]
        if kind == REQUEST_IDENTITIES:
            fields.end()
            return Identities()
        if kind == EXTENSION:
            return _bind(fields)
        if kind == SIGN_REQUEST:
            return _sign(fields)
    except ValueError:
        return None
    return None


def _bind(fields: _Fields) -> Bind | None:
    if fields.text() != SESSION_BIND:
        return None
    for _ in ("host key", "session", "signature"):
        fields.text()
    forwarded = fields.take(1) != b"\0"
    fields.end()
    return Bind(forwarded)


def _sign(fields: _Fields) -> Sign | None:
    key, data, flags = fields.text(), _Fields(fields.text()), fields.number()
    fields.end()
    session = data.text()
    if data.take(1)[0] != _USERAUTH_REQUEST:
        return None
    user, service, method = data.text(), data.text(), data.text()
    if service != _SERVICE or method not in (_METHOD, _HOSTBOUND) or data.take(1) != b"\1":
        return None
    algorithm = data.text()
    if data.text() != key:
        return None
    host_key = data.text() if method == _HOSTBOUND else b""
    data.end()
    if flags not in _FLAGS:
        return None
    return Sign(key, flags, session, user, method, algorithm, host_key)


def sign_request(asked: Sign, key: bytes, algorithm: bytes, flags: int) -> bytes:
    """Return the message that asks for the same login by another key."""
    data = b"".join(
        (
            _text(asked.session), bytes((_USERAUTH_REQUEST,)), _text(asked.user), _text(_SERVICE), _text(asked.method),
            b"\1", _text(algorithm), _text(key), _text(asked.host_key) if asked.method == _HOSTBOUND else b"",
        )
    )  # fmt: skip
    return bytes((SIGN_REQUEST,)) + _text(key) + _text(data) + flags.to_bytes(4, "big")


def identities_answer(keys: list[tuple[bytes, bytes]]) -> bytes:
    """Return the answer that lists these keys: blob and comment."""
    listed = b"".join(_text(blob) + _text(comment) for blob, comment in keys)
    return bytes((IDENTITIES_ANSWER,)) + len(keys).to_bytes(4, "big") + listed


def read_identities(message: bytes) -> list[tuple[bytes, bytes]] | None:
    """Return the keys that an agent lists, blob and comment; None where it does not answer that."""
    fields = _Fields(message)
    try:
        if fields.take(1)[0] != IDENTITIES_ANSWER:
            return None
        found = [(fields.text(), fields.text()) for _ in range(min(fields.number(), MAX_MESSAGE))]
        fields.end()
    except ValueError:
        return None
    return found


def key_type(blob: bytes) -> bytes:
    """Return the type that a key's blob begins with; empty where it is none."""
    try:
        return _Fields(blob).text()
    except ValueError:
        return b""


def framed(message: bytes) -> bytes:
    """Return a message with its length in front."""
    return _text(message)


def _text(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
