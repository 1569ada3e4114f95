"""The Proxy-Status field (RFC 9209), as structured field text (RFC 8941).

`error` is the standard type, `details` the word of the reason, `rcode` the DNS answer where there was one (section
2.3.2). `fix` is a parameter of ours, which others ignore: the option or line that would let the request through.
"""

from __future__ import annotations

from tidegate.model.reason import Reason

NAME = "tidegate"
_MAX_STRING = 512

_RCODES = {Reason.UPSTREAM_NXDOMAIN: "NXDOMAIN", Reason.UPSTREAM_DNS_FAILED: "SERVFAIL"}


def quoted(text: str) -> str:
    """Return `text` as a structured-field string: visible ASCII and spaces, quotes and backslashes escaped."""
    plain = "".join(char if " " <= char <= "~" else "?" for char in text[:_MAX_STRING])
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def proxy_status(reason: Reason, fix: str = "") -> str:
    """Return the value of Proxy-Status for a refusal or failure with this reason."""
    parts = [NAME]
    if reason.proxy_error:
        parts.append(f"error={reason.proxy_error}")
    parts.append(f"details={quoted(reason.word)}")
    if reason in _RCODES:
        parts.append(f"rcode={quoted(_RCODES[reason])}")
    if fix:
        parts.append(f"fix={quoted(fix)}")
    return "; ".join(parts)
