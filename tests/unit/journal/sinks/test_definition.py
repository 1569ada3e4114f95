"""tidegate.journal.sinks.definition: which addresses, keys and filters make a sink."""

from __future__ import annotations

import pytest

from tests.sinks.rig import authority
from tidegate.journal.sinks.definition import Definition, Keys, check, definition_of, plain
from tidegate.model.errors import UsageError

KEY = b"0123456789abcdef"
GOOD = [
    ("https://h.test/x?y=z", KEY, "webhook", "h.test"),
    ("http://127.0.0.1:9/x", KEY, "webhook", "127.0.0.1"),
    ("elasticsearch+https://h.test:9200/audit", KEY, "elasticsearch", "h.test"),
    ("opensearch+https://h.test/audit", b"u:p", "elasticsearch", "h.test"),
    ("otlp+https://[2001:db8::1]:4318", None, "otlp", "[2001:db8::1]"),
    ("jira+https://acme.atlassian.net", b"u:t", "jira", "acme.atlassian.net"),
    ("syslog:///dev/log", None, "syslog", "/dev/log"),
    ("syslog+unix:///run/x", None, "syslog", "/run/x"),
    ("syslog+tls://h.test", None, "syslog", "h.test"),
    ("syslog+tcp://localhost:601", None, "syslog", "localhost"),
    ("syslog+udp://[::1]:514", None, "syslog", "[::1]"),
]
BAD = [
    ("http://h.test/x", KEY),
    ("https://h.test/x", None),
    ("https://h.test/x", b"short"),
    ("https://u:p@h.test/", KEY),
    ("elasticsearch+https://h.test", KEY),
    ("elasticsearch+https://h.test/a?b", KEY),
    ("elasticsearch+http://h.test/a", KEY),
    ("otlp+https://h.test/?x", None),
    ("kafka+https://h.test/", KEY),
    ("syslog+tcp://h.test", None),
    ("syslog+udp://h.test", None),
    ("syslog+tls://h.test/path", None),
    ("syslog+tls://u@h.test", None),
    ("syslog+tls://h.test:x", None),
    ("syslog+dtls://h.test", None),
    ("syslog://h.test", None),
    ("otlp+https://h.test/\nx", None),
    ("otlp+https://h.test", b"a\r\nX-Y: z"),
    ("https://h.test/" + "x" * 3000, KEY),
]


@pytest.mark.parametrize(("url", "key", "kind", "host"), GOOD)
def test_sinks_that_can_be(url: str, key: bytes | None, kind: str, host: str) -> None:
    """JRN-6: the address says what it is; everybody may see its host."""
    one = Definition("siem", url)
    check(one, Keys(key))
    assert (one.kind, one.host) == (kind, host)
    assert definition_of(plain(one)) == one


@pytest.mark.parametrize(("url", "key"), BAD)
def test_sinks_that_cannot_be(url: str, key: bytes | None) -> None:
    """JRN-6: clear text to elsewhere, no key where one is needed, odd characters, kinds that are none."""
    with pytest.raises(UsageError):
        check(Definition("siem", url), Keys(key))


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "../x", "x" * 50])
def test_names(name: str) -> None:
    """JRN-6: a name is a file's, and cannot lead elsewhere."""
    with pytest.raises(UsageError):
        check(Definition(name, "otlp+https://h.test"), Keys())


def test_clear_text_where_it_is_said() -> None:
    """JRN-6: the operator may; a private authority has to be one."""
    check(Definition("s", "syslog+udp://h.test", clear=True), Keys())
    check(Definition("s", "otlp+http://h.test:4318", clear=True), Keys())
    check(Definition("s", "syslog+tls://h.test", ca=authority().pem), Keys())
    with pytest.raises(UsageError, match="PEM"):
        check(Definition("s", "syslog+tls://h.test", ca="x"), Keys())


def test_a_header_for_the_key() -> None:
    """JRN-6: a collector may want it under a name of its own, and never under one that frames the request."""
    check(Definition("o", "otlp+https://h.test", key_header="x-honeycomb-team"), Keys(b"k"))
    for header in ("Host", "content-length", "a b", "x:y"):
        with pytest.raises(UsageError):
            check(Definition("o", "otlp+https://h.test", key_header=header), Keys(b"k"))
    with pytest.raises(UsageError):
        check(Definition("o", "https://h.test/", key_header="x-key"), Keys(KEY))


def test_certificates_and_proxies() -> None:
    """JRN-6: a certificate where there is TLS, a proxy where there is HTTP, each with its key; older files are read."""
    client = authority().client
    keys = Keys(client=client["cert_key"])
    proxy = "http://proxy.test:3128"
    for url in ("otlp+https://h.test", "syslog+tls://h.test"):
        check(Definition("o", url, cert=client["cert"]), keys)
        for cert, given in ((client["cert"], Keys()), ("", keys)):
            with pytest.raises(UsageError, match="is missing"):
                check(Definition("o", url, cert=cert), given)
    for url in ("syslog+tcp://localhost", "syslog:///dev/log", "otlp+http://localhost"):
        with pytest.raises(UsageError, match="under TLS only"):
            check(Definition("o", url, cert=client["cert"]), keys)
    check(Definition("o", "otlp+https://h.test", proxy=proxy), Keys(proxy=b"me:s3cret"))
    for url in ("syslog+tls://h.test", "syslog:///dev/log"):
        with pytest.raises(UsageError, match="no proxy"):
            check(Definition("o", url, proxy=proxy), Keys())
    with pytest.raises(UsageError, match="no proxy that"):
        check(Definition("o", "otlp+https://h.test"), Keys(proxy=b"me:s3cret"))
    older = {name: value for name, value in plain(Definition("o", "u")).items() if name not in ("cert", "proxy")}
    assert definition_of(older) == Definition("o", "u")


def test_filters_are_checked() -> None:
    """JRN-6: a type or severity that is none is refused; an issue is told of ends of tasks only."""
    with pytest.raises(UsageError):
        check(Definition("o", "otlp+https://h.test", kinds=("Net",)), Keys())
    with pytest.raises(UsageError):
        check(Definition("j", "jira+https://h.test", kinds=("net.blocked",)), Keys(b"t"))
    assert Definition("j", "jira+https://h.test").wanted.kinds == ("task.ended",)
