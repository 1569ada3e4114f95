"""Where a request was addressed and whence it comes; the doors' own names are in test_app.py, over sockets."""

from __future__ import annotations

import pytest

from tidegate.server.api.errors import ApiError
from tidegate.server.api.guard import HEADERS, check_addressed, check_framing, check_source
from tidegate.server.api.listener import tcp_door

DOOR = tcp_door("http", ("127.0.0.1", "localhost"), 80)


def test_the_policy_of_pages_lets_nothing_in_from_elsewhere() -> None:
    """SRV-1: scripts, styles, images and connections are this server's own; nothing frames it and no form leaves it."""
    said = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert said["default-src"] == "'none'"
    for name in ("script-src", "style-src", "connect-src"):
        assert said[name] == "'self'"
    assert said["img-src"] == "'self' data:"
    for name in ("frame-ancestors", "base-uri", "form-action"):
        assert said[name] == "'none'"


def test_a_body_has_one_length() -> None:
    """SRV-1: both lengths are 400 and the end of the connection; either, or none, passes."""
    for headers in ({}, {"content-length": "5"}, {"transfer-encoding": "chunked"}):
        check_framing(headers)
    with pytest.raises(ApiError) as caught:
        check_framing({"content-length": "5", "transfer-encoding": "chunked"})
    assert (caught.value.status, caught.value.headers["Connection"]) == (400, "close")


@pytest.mark.parametrize("host", ["127.0.0.1:80", "LocalHost:80"])
def test_own_hosts_pass(host: str) -> None:
    """SRV-1: the names of the door, in any case."""
    check_addressed({"host": host}, DOOR.hosts)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost.:80", "[::1]:80", "a@127.0.0.1:80", "", None]
)
def test_other_hosts_do_not(host: str | None) -> None:
    """SRV-1: anything else is 421, a missing one too."""
    with pytest.raises(ApiError) as caught:
        check_addressed({} if host is None else {"host": host}, DOOR.hosts)
    assert caught.value.status == 421


@pytest.mark.parametrize(
    ("method", "path", "site", "passes"),
    [
        ("GET", "/", "cross-site", True),
        ("GET", "/app.js", "same-site", True),
        ("GET", "/api/tasks", "same-site", False),
        ("GET", "/api/tasks", "same-origin", True),
        ("GET", "/api/tasks", "none", True),
        ("POST", "/", "cross-site", False),
        ("POST", "/api/tasks", "odd", False),
    ],
)
def test_the_site_of_the_sender_counts(method: str, path: str, site: str, *, passes: bool) -> None:
    """SRV-1: a link from elsewhere may open the portal; nothing from elsewhere reads the API or changes anything."""
    if passes:
        check_source(method, path, {"sec-fetch-site": site}, DOOR.origins)
        return
    with pytest.raises(ApiError) as caught:
        check_source(method, path, {"sec-fetch-site": site}, DOOR.origins)
    assert caught.value.status == 403
