"""The server's settings."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.state.settings import SettingError, Settings, changed, plain, shown


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({"network_default": "none"}, True),
        ({"network_default": "allowlist"}, True),
        ({"network_default": "open"}, False),
        ({"network_default": None}, False),
        ({"default_hosts": []}, True),
        ({"default_hosts": ["a.test", "*.b.test:443"]}, True),
        ({"default_hosts": ["h.test"] * 1000}, True),
        ({"default_hosts": ["h.test"] * 1001}, False),
        ({"default_hosts": "a.test"}, False),
        ({"default_hosts": [1]}, False),
        ({"default_hosts": [""]}, False),
        ({"default_hosts": ["a\x1b[2J"]}, False),
        ({"default_hosts": ["a" * 301]}, False),
        ({"wait_seconds": 60}, True),
        ({"wait_seconds": 59.9}, False),
        ({"wait_seconds": 8 * 3600}, True),
        ({"wait_seconds": 8 * 3600 + 1}, False),
        ({"wait_seconds": True}, False),
        ({"wait_seconds": "900"}, False),
        ({"wait_seconds": float("nan")}, False),
        ({"waitseconds": 900}, False),
        ({"notify": False}, True),
        ({"notify": 0}, False),
        ({"webhook": "https://chat.test/x"}, True),
        ({"webhook": "https://chat.test/" + "x" * 2000}, False),
        ({"webhook": "https://chat.test/\n"}, False),
        ({"webhook": None}, False),
        ({"relay_image": "registry.example.com:5000/a/relay@sha256:0a"}, True),
        ({"relay_image": ""}, True),
        ({"relay_image": "--privileged"}, False),
        ({"relay_image": "a b"}, False),
        ({"relay_image": "x" * 301}, False),
        ({"relay_image": None}, False),
        ({}, True),
    ],
)
def test_a_setting_is_what_it_can_be(changes: dict[str, Any], *, good: bool) -> None:
    """POL-13, ASK-2: closed choices and bounds, each with its neighbour outside; a wrong name is named."""
    if good:
        after = plain(changed(Settings(), changes))
        assert {name: after[name] for name in changes} == changes
        return
    with pytest.raises(SettingError) as caught:
        changed(Settings(), changes)
    assert str(caught.value).isprintable()
    assert caught.value.fix


def test_the_defaults_reach_nothing() -> None:
    """POL-13: a task without a policy has no network, unless the operator said so; it waits a quarter of an hour."""
    assert plain(Settings()) == {
        "network_default": "none", "default_hosts": [], "wait_seconds": 900, "notify": True, "webhook": "",
        "relay_image": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("", ""),
        ("https://chat.test", "https://chat.test"),
        ("https://chat.test/hook/SECRET?t=SECRET", "https://chat.test/..."),
        ("https://chat.test?t=SECRET", "https://chat.test"),
        ("http://127.0.0.1:80/", "http://127.0.0.1:80/..."),
    ],
)
def test_of_a_webhook_only_its_place_is_shown(url: str, seen: str) -> None:
    """JRN-5, SRV-2: the path of a chat tool's address is a secret of its own."""
    assert shown(Settings(webhook=url))["webhook"] == seen
