"""The normal form of paths; what follows from it is in test_alternatives.py."""

from __future__ import annotations

import pytest

from tidegate.policy.paths import OVERRIDES, TARGETS, methods_in_query, normal_path


@pytest.mark.parametrize(
    ("target", "segments"),
    [
        (b"/", ["", ""]),
        (b"/a/b?c=/../d", ["", "a", "b"]),
        (b"/%61/x%20y", ["", "a", "x%20y"]),
        (b"/a%3ab", ["", "a%3Ab"]),
        (b"/a/../b", None),
        (b"/a//b", None),
        (b"/a%2fb", None),
        (b"/a%", None),
        (b"/a/%u002e%u002e/b", None),
        (b"/a/%f8%80%80%80%ae", None),
        (b"/a/%FC%80%80%80%80%AF", None),
        (b"/a/%EF%BC%8E%EF%BC%8E/b", None),
        (b"/a%ef%bc%8fb", None),
        (b"/a%e2%88%95b", None),
        (b"/a/%e2%80%a5/b", None),
        (b"/caf%c3%a9/%ef%bc%a1/%e2%82%ac", ["", "caf%C3%A9", "%EF%BC%A1", "%E2%82%AC"]),
        (b"*", None),
    ],
)
def test_normal_form(target: bytes, segments: list[str] | None) -> None:
    """INS-6: one spelling for each path, and none for what two servers could read differently."""
    assert normal_path(target) == segments


def test_headers_that_override() -> None:
    """INS-6: those of targets are among them, with '-' and '_' alike."""
    assert TARGETS < OVERRIDES
    assert {b"x-http-method-override", b"x_http_method_override", b"x-method-override", b"x-http-method"} < OVERRIDES


@pytest.mark.parametrize(
    ("query", "methods"),
    [
        (b"_method=delete", ["DELETE"]),
        (b"a=1&%5FmeTHod=+put", ["PUT"]),
        (b"a;+.method=PATCH&_method=GET", ["PATCH", "GET"]),
        (b"X-HTTP-Method-Override=purge", ["PURGE"]),
        (b"x_method_override%00=PUT", ["PUT"]),
        (b"method=delete", ["DELETE"]),
        (b"method=flickr.photos.search&payment_method=put", []),
        (b"_method&x=_method", []),
        (b"a=_method%3Ddelete", []),
        (b"%zz%5f_method=DELETE%", []),
    ],
)
def test_methods_that_a_query_says(query: bytes, methods: list[str]) -> None:
    """INS-6: parameters that frameworks take for the method, as servers spell them; `method` where it names one."""
    assert methods_in_query(b"/x?" + query) == methods
    assert methods_in_query(b"/" + query) == []
