"""Proves where a request goes, and that Host agrees (GAT-1, GAT-3, POL-3, B02 to B10, B25, B26, B31, B32, B43, B44)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.feeding import outcome
from tidegate.model.destination import Destination, PortError, parse_authority, parse_port, split_authority
from tidegate.model.host import Host, HostError, canonical_host
from tidegate.model.reason import Reason
from tidegate.wire.authority import absolute_form, absolute_target, connect_target, host_field, inner_target
from tidegate.wire.errors import WireError
from tidegate.wire.http1 import parse_request_head


def connect(target: bytes, host: bytes | None = None, *, version: bytes = b"1.0", more: bytes = b"") -> Destination:
    """Return where a CONNECT goes."""
    line = b"" if host is None else b"Host: %b\r\n" % host
    return connect_target(parse_request_head(b"CONNECT %b HTTP/%b\r\n%b%b\r\n" % (target, version, line, more)))


def absolute(
    target: bytes, host: bytes | None = None, *, version: bytes = b"1.0", method: bytes = b"GET", more: bytes = b""
) -> tuple[str, bytes]:
    """Return where another request goes, and with which target."""
    line = b"" if host is None else b"Host: %b\r\n" % host
    head = parse_request_head(b"%b %b HTTP/%b\r\n%b%b\r\n" % (method, target, version, line, more))
    destination, path = absolute_target(head)
    return str(destination), path


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"CONNECT EXAMPLE.com.:443 HTTP/1.1\r\nHost: EXAMPLE.com.:443\r\n\r\n", "example.com:443"),  # curl
        (b"CONNECT pypi.test:443 HTTP/1.0\r\n\r\n", "pypi.test:443"),  # Python 3.11, pip
        (b"CONNECT pypi.test:443 HTTP/1.0\r\nProxy-Authorization: Basic x\r\n\r\n", "pypi.test:443"),
        (
            b"CONNECT a.test:443 HTTP/1.1\r\nUser-Agent: x\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\n\r\n",
            "a.test:443",
        ),
        (b"CONNECT a.test:443 HTTP/1.1\r\nProxy-Authorization: Basic x\r\nHost: a.test:443\r\n\r\n", "a.test:443"),
        (b"CONNECT [2600:BEEF::1]:443 HTTP/1.1\r\nHost: [2600:beef::1]:443\r\n\r\n", "[2600:beef::1]:443"),
        (b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nContent-Length: 0\r\n\r\n", "a.test:443"),
    ],
)
def test_what_real_clients_send_is_accepted(request_bytes: bytes, expected: str) -> None:
    """The CONNECT of curl, pip without Host, Java with a Host that lacks the port, wget: all are fine (B02, B61)."""
    for _ in range(2):  # the second time from memory
        assert str(connect_target(parse_request_head(request_bytes))) == expected


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (b"a.test", Reason.BAD_PORT),
        (b"a.test:", Reason.BAD_PORT),
        (b"a.test:0", Reason.BAD_PORT),
        (b"a.test:65536", Reason.BAD_PORT),
        (b"a.test:99999", Reason.BAD_PORT),
        (b"a.test:+443", Reason.BAD_PORT),
        (b"a.test:-443", Reason.BAD_PORT),
        (b"a.test:0443", Reason.BAD_PORT),
        (b"a.test:443x", Reason.BAD_PORT),
        (b"a.test:4_43", Reason.BAD_PORT),
        (b":443", Reason.BAD_HOST),
        (b"[::1]", Reason.BAD_PORT),
        (b"http://a.test:443", Reason.BAD_HOST),
        (b"a.test:443/", Reason.BAD_PORT),
        (b"/a.test:443", Reason.BAD_HOST),
        (b"2001:db8::1:443", Reason.BAD_HOST),
        (b"::1:443", Reason.BAD_HOST),
        (b"[[::1]]:443", Reason.BAD_HOST),
        (b"[::1:443", Reason.BAD_HOST),
        (b"[fe80::1%25lo]:443", Reason.BAD_HOST),
        (b"[1.2.3.4]:443", Reason.BAD_HOST),
        (b"[::1]443", Reason.BAD_HOST),
        (b"example.com..:443", Reason.BAD_HOST),
        (b".example.com:443", Reason.BAD_HOST),
        (b"a..b:443", Reason.BAD_HOST),
        (b"a" * 64 + b".test:443", Reason.BAD_HOST),
        (b"evil.test%23.a.test:443", Reason.BAD_HOST),
        (b"evil.test%2f.a.test:443", Reason.BAD_HOST),
        (b"evil.test%00.a.test:443", Reason.BAD_HOST),
        (b"allowed.test:443@evil.test:443", Reason.BAD_HOST),
        (b"user:pw@evil.test:443", Reason.BAD_HOST),
        (b"0177.0.0.1:443", Reason.BAD_HOST),
        (b"2130706433:443", Reason.BAD_HOST),
        (b"0x7f.1:443", Reason.BAD_HOST),
        (b"127.1:443", Reason.BAD_HOST),
        (b"0:443", Reason.BAD_HOST),
        (b"*:443", Reason.BAD_HOST),
        (b"*", Reason.BAD_HOST),
    ],
)
def test_a_connect_target_is_host_and_port(target: bytes, reason: Reason) -> None:
    """Every other spelling is 400 with the right word (GAT-1, B10, B25, B26, B43, B44)."""
    found = outcome(lambda: connect(target))
    assert found is reason
    assert reason.status == 400


def test_full_width_digits_are_no_port() -> None:
    """A port of full-width digits never becomes a number (B44)."""
    assert outcome(lambda: connect("a.test:\uff14\uff14\uff13".encode())) is Reason.BAD_HOST


@pytest.mark.parametrize("target", [b"a.test:443", b"a.test:1", b"a.test:65535", b"_x.a-b.test:80", b"1.2.3.4:22"])
def test_the_neighbours_of_bad_targets_pass(target: bytes) -> None:
    """The first and the last port, underscores and canonical literals are fine."""
    assert str(connect(target)).encode() == target


def test_an_ipv4_literal_with_a_final_dot_is_the_literal() -> None:
    """`127.0.0.1.` is judged as 127.0.0.1, never as a name (B02)."""
    assert connect(b"127.0.0.1.:443").host == Host("127.0.0.1", b"\x7f\0\0\1")


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (b"b.test:443", Reason.HOST_MISMATCH),
        (b"b.test", Reason.HOST_MISMATCH),
        (b"xa.test", Reason.HOST_MISMATCH),
        (b"a.test:80", Reason.HOST_MISMATCH),
        (b"", Reason.BAD_HOST),
        (b"a.test, b.test", Reason.BAD_HOST),
        (b"a.test b.test", Reason.BAD_HOST),
        (b"a.test:", Reason.BAD_HOST),
        (b"a.test:+443", Reason.BAD_HOST),
        (b"u@a.test", Reason.BAD_HOST),
        (b"a.test\xe9", Reason.BAD_HOST),
        (b"a.test", None),
        (b"A.TEST.", None),
        (b"a.test:443", None),
        (b"A.test:443", None),
    ],
)
def test_host_agrees_with_the_request_line(host: bytes, reason: Reason | None) -> None:
    """Another name or another port is 400, a Host without port is not a mismatch; HTTP/1.0 too (GAT-3, B32, B61)."""
    for version in (b"1.0", b"1.1"):
        assert outcome(lambda version=version: connect(b"a.test:443", host, version=version)) == (
            reason or parse_authority(b"a.test:443")
        )
        found = outcome(lambda version=version: absolute(b"http://a.test:443/", host, version=version))
        assert found == (reason or ("a.test:443", b"/"))


def test_port_80_and_no_port_are_the_same_host() -> None:
    """`Host: a.test:80` beside `http://a.test/`, and the reverse, agree (B32)."""
    assert absolute(b"http://a.test/", b"a.test:80") == ("a.test:80", b"/")
    assert absolute(b"http://a.test:80/", b"a.test") == ("a.test:80", b"/")
    assert outcome(lambda: absolute(b"http://a.test/", b"a.test:8080")) is Reason.HOST_MISMATCH


def test_the_number_of_hosts() -> None:
    """HTTP/1.1 has exactly one Host, HTTP/1.0 at most one, also where both say the same (B32, B61)."""
    twice = b"Host: a.test:443\r\n"
    for version in (b"1.0", b"1.1"):
        for call in (connect, absolute):
            target = b"a.test:443" if call is connect else b"http://a.test:443/"
            found = outcome(lambda c=call, t=target, v=version: c(t, b"a.test:443", version=v, more=twice))
            assert found is Reason.BAD_REQUEST
    assert outcome(lambda: connect(b"a.test:443", version=b"1.1")) is Reason.BAD_REQUEST
    assert outcome(lambda: absolute(b"http://a.test/", version=b"1.1")) is Reason.BAD_REQUEST
    assert absolute(b"http://a.test/", version=b"1.0") == ("a.test:80", b"/")


@pytest.mark.parametrize(
    "more", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: x\r\n"]
)
def test_a_connect_announces_no_body(more: bytes) -> None:
    """What follows a CONNECT is the tunnel, so a length is ambiguous (GAT-4)."""
    assert outcome(lambda: connect(b"a.test:443", b"a.test", version=b"1.1", more=more)) is Reason.BAD_FRAMING


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"http://a.test", ("a.test:80", b"/")),
        (b"http://a.test/", ("a.test:80", b"/")),
        (b"HTTP://A.Test./x", ("a.test:80", b"/x")),
        (b"http://a.test:8080/x?y=http://b.test/@", ("a.test:8080", b"/x?y=http://b.test/@")),
        (b"http://a.test?q", ("a.test:80", b"/?q")),
        (b"http://a.test?q/../x@b", ("a.test:80", b"/?q/../x@b")),
        (b"http://[2600:beef::1]/", ("[2600:beef::1]:80", b"/")),
        (b"http://[2600:beef::1]:81/", ("[2600:beef::1]:81", b"/")),
        (b"http://a.test//x", ("a.test:80", b"//x")),
        (b"http://a.test/%2e%2E/|^", ("a.test:80", b"/%2e%2E/|^")),
    ],
)
def test_an_absolute_target_becomes_origin_form(target: bytes, expected: tuple[str, bytes]) -> None:
    """The authority ends at the first '/', '?' or '#'; the rest travels on unchanged (B44: port 80 when absent)."""
    for _ in range(2):
        assert absolute(target) == expected


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (b"/x", Reason.REQUEST_FORM),
        (b"*", Reason.REQUEST_FORM),
        (b"a.test:80", Reason.REQUEST_FORM),
        (b"a.test/x", Reason.REQUEST_FORM),
        (b"//a.test/x", Reason.REQUEST_FORM),
        (b"http:/a.test/x", Reason.REQUEST_FORM),
        (b"https://a.test/", Reason.REQUEST_FORM),
        (b"HTTPS://a.test/", Reason.REQUEST_FORM),
        (b"ftp://a.test/", Reason.REQUEST_FORM),
        (b"ws://a.test/", Reason.REQUEST_FORM),
        (b"/http://a.test/", Reason.REQUEST_FORM),
        (b"http://", Reason.BAD_HOST),
        (b"http:///x", Reason.BAD_HOST),
        (b"http://?x", Reason.BAD_HOST),
        (b"http://:80/", Reason.BAD_HOST),
        (b"http://a.test:/", Reason.BAD_PORT),
        (b"http://a.test:080/", Reason.BAD_PORT),
        (b"http://a.test:80x/", Reason.BAD_PORT),
        (b"http://allowed.test:80@evil.test/", Reason.BAD_HOST),
        (b"http://allowed.test%3A@evil.test/", Reason.BAD_HOST),
        (b"http://evil.test%23.a.test/", Reason.BAD_HOST),
        (b"http://evil.test\\.a.test/", Reason.BAD_HOST),
        (b"http://evil.test\\@a.test/", Reason.BAD_HOST),
        (b"http://0x7f.1/", Reason.BAD_HOST),
        (b"http://0177.0.0.1/", Reason.BAD_HOST),
        (b"http://2001:db8::1/", Reason.BAD_HOST),
        (b"http://[::1%25lo]/", Reason.BAD_HOST),
        (b"http://a.test/x#y", Reason.BAD_REQUEST),
        (b"http://a.test#y", Reason.BAD_REQUEST),
    ],
)
def test_other_targets_are_refused(target: bytes, reason: Reason) -> None:
    """Origin-form, `*`, other schemes, userinfo, escapes and numbers in hosts: 400 (B08, B10, B25, B31)."""
    assert outcome(lambda: absolute(target, b"a.test")) is reason
    assert reason.status == 400


def test_https_and_origin_form_are_explained() -> None:
    """The line says what to send instead (GAT-1, B31)."""
    for target, words in [(b"https://a.test/", "CONNECT host:443"), (b"/x", "names the host")]:
        with pytest.raises(WireError, match=words):
            absolute(target)


def test_a_password_is_never_shown() -> None:
    """Userinfo is in neither the sentence nor the raw host of an error (B08)."""
    for call, target in [
        (connect, b"me:hunter2@evil.test:443"),
        (absolute, b"http://me:hunter2@evil.test/"),
        (absolute, b"https://me:hunter2@evil.test/"),
        (absolute, b"me:hunter2@evil.test://"),
        (absolute, b"http://evil.test:hunter2/x@y"),
        (connect, b"evil.test:443?hunter2"),
        (connect, b"evil.test:443/hunter2"),
        (connect, b"http://evil.test:443/?hunter2"),
    ]:
        with pytest.raises(WireError) as caught:
            call(target)
        assert "hunter2" not in caught.value.sentence()
        assert caught.value.raw in {"", "evil.test", "evil.test:443"}


def test_a_short_target_is_as_discreet() -> None:
    """What stands where a port should be is shown only where it can be nothing else (B08)."""
    for target in (b"a:1?hunter2", b"a:hunter2/", b"a:1#hunter2"):
        with pytest.raises(WireError) as caught:
            connect(target)
        assert "hunter2" not in caught.value.detail
    with pytest.raises(WireError, match="'44x'"):
        connect(b"a:44x")


def test_no_query_string_is_shown() -> None:
    """The raw host of an error ends where the authority does (JRN-5)."""
    for target in (b"https://a.test?token=hunter2", b"http://a.te%st/?token=hunter2", b"ftp://a.test/hunter2"):
        with pytest.raises(WireError) as caught:
            absolute(target)
        assert "hunter2" not in caught.value.sentence()


def test_trace_is_not_forwarded() -> None:
    """TRACE is 405 and says whom it was for; OPTIONS beside it passes (B35)."""
    with pytest.raises(WireError) as caught:
        absolute(b"http://a.test/", b"a.test", method=b"TRACE")
    assert caught.value.reason is Reason.BAD_METHOD
    assert caught.value.reason.status == 405
    assert str(caught.value.destination) == "a.test:80"
    assert absolute(b"http://a.test/", b"a.test", method=b"OPTIONS") == ("a.test:80", b"/")


def test_options_without_a_path_asks_for_the_server() -> None:
    """RFC 9112 section 3.2.4: it becomes `*`, and with an upstream proxy the bare authority again."""
    assert absolute(b"http://a.test", method=b"OPTIONS") == ("a.test:80", b"*")
    where = parse_authority(b"a.test:80")
    assert absolute_form(where, b"*") == b"http://a.test"
    assert absolute_form(where, b"/x?y") == b"http://a.test/x?y"


def test_the_host_that_travels_on() -> None:
    """Canonical, in brackets where needed, without the default port."""
    assert host_field(parse_authority(b"A.test.:80")) == b"a.test"
    assert host_field(parse_authority(b"a.test:8080")) == b"a.test:8080"
    assert host_field(parse_authority(b"[2600:BEEF::1]:80")) == b"[2600:beef::1]"
    assert host_field(parse_authority(b"a.test:443"), 443) == b"a.test"


def test_memory_of_authorities_is_bounded() -> None:
    """Many hosts neither grow it without bound nor change an answer; the two forms never answer for each other."""
    for number in range(5000):
        assert connect(b"h%d.test:443" % number).port == 443
    assert absolute(b"http://mixed.test/") == ("mixed.test:80", b"/")
    assert outcome(lambda: connect(b"mixed.test")) is Reason.BAD_PORT


HOSTS = st.lists(
    st.sampled_from(["a", "test", ".", ":", "@", "[", "]", "::1", "%", "1", "0x", "-", "443", "\\", "/"]), max_size=7
)


@given(HOSTS.map(lambda parts: "".join(parts).encode()))
def test_both_forms_agree_with_the_one_normaliser(authority: bytes) -> None:
    """CONNECT and absolute-form accept the same hosts and mean the same by them (POL-3)."""
    if b"/" in authority:
        return
    first = outcome(lambda: connect(authority + b":77"))
    second = outcome(lambda: absolute(b"http://" + authority + b":77/x"))
    if isinstance(first, Destination):
        assert second == (str(first), b"/x")
        assert parse_authority(str(first)) == first
    else:
        assert second is first


def long_way(authority: bytes, destination: Destination) -> bool:
    """Return whether an authority inside TLS names a destination, by taking it apart."""
    host, text = split_authority(authority)
    return canonical_host(host) == destination.host and (443 if text is None else parse_port(text)) == destination.port


NAMES = st.lists(st.sampled_from(["a", "A", "xn--b", "_c", "0", "0x1", "1-2", "e" * 63]), min_size=1, max_size=4).map(
    ".".join
)
LITERALS = st.ip_addresses().map(lambda ip: f"[{ip}]" if ip.version == 6 else str(ip))


@given(
    NAMES | LITERALS, st.sampled_from([443, 1, 8443]), st.sampled_from(["as it is", "upper", "dot", "port", "other"])
)
def test_a_host_inside_tls_is_judged_alike_by_its_text_and_by_its_parts(text: str, port: int, how: str) -> None:
    """GAT-3, POL-3: what is compared as text first passes and fails exactly as it does when it is taken apart."""
    try:
        destination = Destination(canonical_host(text), port)
    except HostError:
        return
    field = host_field(destination, 443)
    authority = {
        "as it is": field,
        "upper": field.upper(),
        "dot": destination.host.bracketed.encode() + (b".:%d" % port),
        "port": destination.host.bracketed.encode() + (b":%d" % port),
        "other": b"other." + field,
    }[how]

    def asked() -> bytes:
        return inner_target(parse_request_head(b"GET /x HTTP/1.1\r\nHost: %b\r\n\r\n" % authority), destination)

    try:
        names = long_way(authority, destination)
    except (HostError, PortError):
        assert outcome(asked) is Reason.BAD_HOST
    else:
        assert outcome(asked) == (b"/x" if names else Reason.MISDIRECTED)
        if how == "as it is":
            assert names
