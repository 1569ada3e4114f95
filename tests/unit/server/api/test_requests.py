"""The types of what the API takes: what is just inside passes, what is just outside does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tidegate.server.api import requests
from tidegate.server.api.requests import NewTask, NewToken, Reply, SettingsChange, TasksQuery

FOLDER = {"folder": "/a"}


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (NewTask, FOLDER, {"folder": "a"}),
        (NewTask, {"folder": "/" + "a" * 4095}, {"folder": "/" + "a" * 4096}),
        (NewTask, {"folder": "/ä b"}, {"folder": "/a\n"}),
        (NewTask, {"folder": "/"}, {"folder": "/a\0b"}),
        (NewTask, FOLDER | {"name": "a" * 80}, FOLDER | {"name": "a" * 81}),
        (NewTask, FOLDER | {"name": "a b"}, FOLDER | {"name": "a\x1bb"}),
        (NewTask, FOLDER | {"wait_seconds": 60}, FOLDER | {"wait_seconds": 59}),
        (NewTask, FOLDER | {"wait_seconds": 28800}, FOLDER | {"wait_seconds": 28801}),
        (NewTask, FOLDER | {"hosts": ["a"] * 1000}, FOLDER | {"hosts": ["a"] * 1001}),
        (NewTask, FOLDER | {"hosts": ["a" * 260]}, FOLDER | {"hosts": ["a" * 261]}),
        (NewTask, FOLDER | {"network": "allowlist"}, FOLDER | {"network": "all"}),
        (Reply, {"answer": "allow", "connections": 1}, {"answer": "allow", "connections": 0}),
        (Reply, {"answer": "allow", "bytes": 2**53 - 1}, {"answer": "allow", "bytes": 2**53}),
        (Reply, {"answer": "allow", "until": 0}, {"answer": "allow", "until": -1}),
        (Reply, {"answer": "deny-task"}, {"answer": "Deny"}),
        (NewToken, {"name": "a", "role": "owner"}, {"name": "a", "role": "admin"}),
        (NewToken, {"name": "a"}, {"name": ""}),
        (SettingsChange, {"wait_seconds": 28800}, {"wait_seconds": 28800.5}),
        (SettingsChange, {"default_hosts": []}, {"default_hosts": "a"}),
        (SettingsChange, {}, {"wait": 60}),
        (TasksQuery, {"limit": 1000}, {"limit": 1001}),
    ],
)
def test_bounds(kind: type[msgspec.Struct], good: dict[str, Any], bad: dict[str, Any]) -> None:
    """SRV-1, POL-13, ASK-2: the last good value passes and the first bad one is refused."""
    msgspec.convert(good, kind)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(bad, kind)


def test_every_type_refuses_what_it_does_not_know() -> None:
    """SRV-1: no body and no query passes a name that is not known."""
    kinds = [kind for kind in vars(requests).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    assert len(kinds) > 10
    assert all(kind.__struct_config__.forbid_unknown_fields for kind in kinds)
