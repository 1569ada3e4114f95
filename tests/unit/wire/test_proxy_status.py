"""Proves the Proxy-Status field against RFC 9209 and RFC 8941 (GAT-7)."""

from __future__ import annotations

import pytest

from tidegate.model.reason import Reason
from tidegate.wire.proxy_status import proxy_status, quoted

# RFC 9209 section 2.3.
ERROR_TYPES = {
    "dns_timeout",
    "dns_error",
    "destination_not_found",
    "destination_unavailable",
    "destination_ip_prohibited",
    "destination_ip_unroutable",
    "connection_refused",
    "connection_terminated",
    "connection_timeout",
    "connection_read_timeout",
    "connection_write_timeout",
    "connection_limit_reached",
    "tls_protocol_error",
    "tls_certificate_error",
    "tls_alert_received",
    "http_request_error",
    "http_request_denied",
    "http_response_incomplete",
    "http_response_header_section_size",
    "http_response_header_size",
    "http_response_body_size",
    "http_response_trailer_section_size",
    "http_response_trailer_size",
    "http_response_transfer_coding",
    "http_response_content_coding",
    "http_response_timeout",
    "http_upgrade_failed",
    "http_protocol_error",
    "proxy_internal_response",
    "proxy_internal_error",
    "proxy_configuration_error",
    "proxy_loop_detected",
}


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.status])
def test_every_answered_reason_has_a_standard_error_type(reason: Reason) -> None:
    """No error type is invented."""
    assert reason.proxy_error in ERROR_TYPES
    assert proxy_status(reason).startswith(f'tidegate; error={reason.proxy_error}; details="{reason.word}"')


def test_examples() -> None:
    """The word of the reason, the DNS answer where there was one, the fix where there is one."""
    assert proxy_status(Reason.NO_RULE) == 'tidegate; error=http_request_denied; details="no-rule"'
    assert proxy_status(Reason.UPSTREAM_NXDOMAIN).endswith('; rcode="NXDOMAIN"')
    assert proxy_status(Reason.NO_RULE, "--allow a.test:443").endswith('; fix="--allow a.test:443"')
    assert proxy_status(Reason.CLIENT_GONE) == 'tidegate; details="client-gone"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", '"a b"'),
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("a\r\nX: y", '"a??X: y"'),
        ("\xe9\x7f", '"??"'),
        ("", '""'),
    ],
)
def test_strings_are_quoted(text: str, expected: str) -> None:
    """Quotes and backslashes are escaped, and nothing can end the field line."""
    assert quoted(text) == expected


def test_strings_are_bounded() -> None:
    """A long fix does not make a long header."""
    assert len(quoted("x" * 10_000)) == 514
