"""tidegate.wire.ssh_agent: which messages of a task's ssh client are understood, and nothing beside them (HLD-14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.wire.ssh_agent import (
    Bind,
    Identities,
    Sign,
    framed,
    identities_answer,
    key_type,
    read_identities,
    read_request,
    sign_request,
)

KEY = b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + b"k" * 32
SESSION = b"s" * 32


def text(data: bytes) -> bytes:
    """A string of the protocol."""
    return len(data).to_bytes(4, "big") + data


def login(
    *,
    code: bytes = b"\x32",
    user: bytes = b"git",
    service: bytes = b"ssh-connection",
    method: bytes = b"publickey",
    yes: bytes = b"\1",
    key: bytes = KEY,
    tail: bytes = b"",
) -> bytes:
    """RFC 4252 section 7: what is signed."""
    fields = text(SESSION) + code + text(user) + text(service) + text(method) + yes
    return fields + text(b"ssh-ed25519") + text(key) + tail


def sign(data: bytes, *, key: bytes = KEY, flags: int = 0, tail: bytes = b"") -> bytes:
    """A request to sign."""
    return b"\x0d" + text(key) + text(data) + flags.to_bytes(4, "big") + tail


def bind(*, name: bytes = b"session-bind@openssh.com", forwarding: bytes = b"\0", tail: bytes = b"") -> bytes:
    """A binding to a session."""
    return b"\x1b" + text(name) + text(KEY) + text(SESSION) + text(b"signature") + forwarding + tail


HOSTBOUND = b"publickey-hostbound-v00@openssh.com"


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (b"\x0b", Identities()),
        (bind(), Bind(forwarded=False)),
        (bind(forwarding=b"\1"), Bind(forwarded=True)),
        (bind(forwarding=b"\2"), Bind(forwarded=True)),
        (sign(login()), Sign(KEY, 0, SESSION, b"git", b"publickey", b"ssh-ed25519", b"")),
        (sign(login(), flags=4), Sign(KEY, 4, SESSION, b"git", b"publickey", b"ssh-ed25519", b"")),
        (
            sign(login(method=HOSTBOUND, tail=text(b"host"))),
            Sign(KEY, 0, SESSION, b"git", HOSTBOUND, b"ssh-ed25519", b"host"),
        ),
    ],
)
def test_three_requests_are_understood(message: bytes, asked: object) -> None:
    """HLD-14: keys, the binding to a session, and a login to be signed."""
    assert read_request(message) == asked


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x0bx",
        b"\x01",  # version 1
        b"\x11",  # add an identity
        b"\x12" + text(KEY),  # remove one
        b"\x13",  # remove all
        b"\x16" + text(b"pw"),  # lock
        b"\x1b" + text(b"query"),
        bind(name=b"session-bind@openssh.org"),
        bind(tail=b"x"),
        bind()[:-1],
        sign(b""),
        sign(b"data of another protocol"),
        sign(b"SSHSIG" + text(b"file") + text(b"") + text(b"sha512") + text(b"h" * 64)),
        sign(login(code=b"\x33")),
        sign(login(service=b"ssh-userauth")),
        sign(login(method=b"hostbased")),
        sign(login(yes=b"\0")),
        sign(login(key=KEY[:-1] + b"x")),
        sign(login(tail=b"\0")),
        sign(login(tail=text(b"host"))),  # only with the method that has it
        sign(login(method=HOSTBOUND)),
        sign(login(method=HOSTBOUND, tail=text(b"host") + b"\0")),
        sign(login(), flags=1),
        sign(login(), flags=6),
        sign(login(), tail=b"\0"),
        sign(login())[:-1],
        sign(login())[:-5],
        b"\x0d\xff\xff\xff\xff",
    ],
)
def test_all_else_is_not(message: bytes) -> None:
    """HLD-14: nothing is added, removed or locked; what is signed is a login to its last byte, or nothing."""
    assert read_request(message) is None


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_none(data: bytes) -> None:
    """A message is understood or it is not; nothing raises."""
    for message in (data, b"\x0d" + data, b"\x1b" + data, sign(data), sign(login()[: len(data)] + data)):
        read_request(message)


@given(st.binary(max_size=40), st.sampled_from([b"publickey", HOSTBOUND]), st.sampled_from([0, 2, 4]))
def test_a_login_by_another_key_differs_in_the_key_alone(user: bytes, method: bytes, flags: int) -> None:
    """HLD-14: what stands for the real request names the same session, user, method and host key."""
    tail = text(b"host") if method == HOSTBOUND else b""
    asked = read_request(sign(login(user=user, method=method, tail=tail), flags=flags))
    assert isinstance(asked, Sign)
    assert sign_request(asked, KEY, b"ssh-ed25519", flags) == sign(
        login(user=user, method=method, tail=tail), flags=flags
    )
    other = read_request(sign_request(asked, b"\0\0\0\1x", b"alg", 0))
    assert other == asked.replace(key=b"\0\0\0\1x", algorithm=b"alg", flags=0)


def test_identities_go_both_ways() -> None:
    """The list that a task sees is the list that is read of an agent."""
    keys = [(KEY, b"me"), (b"other", b"")]
    assert read_identities(identities_answer(keys)) == keys
    assert read_identities(identities_answer([])) == []
    for broken in (b"", b"\x05", identities_answer(keys)[:-1], identities_answer(keys) + b"x", b"\x0c\xff\xff\xff\xff"):
        assert read_identities(broken) is None


def test_small_parts() -> None:
    """A key's type, and the length in front of a message."""
    assert (key_type(KEY), key_type(b""), key_type(b"\0\0\0\x09x")) == (b"ssh-ed25519", b"", b"")
    assert framed(b"abc") == b"\0\0\0\3abc"
