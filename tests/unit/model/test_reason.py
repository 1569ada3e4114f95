"""tidegate.model.reason."""

from __future__ import annotations

import pytest

from tidegate.model.reason import Reason

# RFC 9209, sections 2.3.1 to 2.3.30: the registered Proxy Error Types.
REGISTERED = {
    "dns_timeout", "dns_error", "destination_not_found", "destination_unavailable", "destination_ip_prohibited",
    "destination_ip_unroutable", "connection_refused", "connection_terminated", "connection_timeout",
    "connection_read_timeout", "connection_write_timeout", "connection_limit_reached", "tls_protocol_error",
    "tls_certificate_error", "tls_alert_received", "http_request_error", "http_request_denied",
    "http_response_incomplete", "http_response_header_section_size", "http_response_header_size",
    "http_response_body_size", "http_response_trailer_section_size", "http_response_trailer_size",
    "http_response_transfer_coding", "http_response_content_coding", "http_response_timeout", "http_upgrade_failed",
    "http_protocol_error", "proxy_internal_response", "proxy_internal_error", "proxy_configuration_error",
    "proxy_loop_detected",
}  # fmt: skip


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.word)
def test_each_reason_has_all_its_renderings(reason: Reason) -> None:
    """POL-6, GAT-7: word, sentence, status and a registered Proxy-Status error for every reason that is answered."""
    assert reason.word.replace("-", "").isalnum()
    assert reason.word == reason.word.lower()
    assert reason.sentence
    assert reason.sentence.isprintable()
    assert reason.status == 0 or 400 <= reason.status < 600
    assert (reason.proxy_error in REGISTERED) if reason.status else True
    assert "-" not in reason.metric


def test_words_are_unique() -> None:
    """A word in a log leads to one reason."""
    assert len({reason.word for reason in Reason}) == len(Reason)


def test_kinds_of_refusal_keep_their_status_apart() -> None:
    """GAT-7, B65: policy is 403, malformed 400, upstream failures 502 and 504."""
    assert Reason.NO_RULE.status == Reason.PRIVATE_ADDRESS.status == Reason.NO_APPROVER.status == 403
    assert Reason.BAD_HOST.status == Reason.HOST_MISMATCH.status == 400
    assert Reason.UPSTREAM_NXDOMAIN.status == Reason.UPSTREAM_REFUSED.status == 502
    assert Reason.UPSTREAM_TIMEOUT.status == 504
    assert Reason.HEADERS_TOO_LARGE.status == 431
    assert Reason.HEADER_TIMEOUT.status == 408
