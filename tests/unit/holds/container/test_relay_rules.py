"""Who makes the rules behind a relay: what the container is given, and what is said where it fails.

With real engines: tests/holds/test_relay_capture.py.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.holds.container import relay_rules
from tidegate.holds.container.engine import Engine
from tidegate.holds.container.profile import profile
from tidegate.holds.container.transport import Way
from tidegate.holds.inside import GATE4, OFF, ON
from tidegate.model.errors import StartError


class Said(Engine):
    """An engine that makes nothing and says what it was asked; its container ends with `status`."""

    def __init__(self, status: str) -> None:
        super().__init__("docker", {})
        self.status = status
        self.asked: list[tuple[str, ...]] = []

    def facts(self) -> Any:
        """As of one in a virtual machine: no canary of this one is there."""
        return SimpleNamespace(in_vm=True, rootless=False)

    def run(self, *arguments: str, **_more: object) -> str:
        """What it answers."""
        self.asked.append(arguments)
        answers = {"create": "c1", "wait": self.status, "logs": "tidegate-relay 1 the table: Operation not permitted"}
        return answers.get(arguments[0], "")


def way(folder: object, capture: str = ON) -> Way:
    """What one task wants."""
    return Way(name="t", labels={}, folder=str(folder), port=3128, capture=capture, image="image:1")


def test_it_has_the_rights_of_its_network_and_nothing_of_the_machine(tmp_path: object) -> None:
    """HLD-13: no mount, the relay's network, two rights, and it is removed before anything else is done."""
    engine = Said("0")
    relay_rules.lay(engine, way(tmp_path), "relay1")
    assert [one[0] for one in engine.asked] == ["create", "start", "wait", "rm"]
    words = engine.asked[0]
    assert words[words.index("--network") + 1] == "container:relay1"
    assert [one for one in words if one.startswith("--cap-add")] == [
        "--cap-add=NET_ADMIN",
        "--cap-add=NET_BIND_SERVICE",
    ]
    assert {"--read-only", "--cap-drop", "no-new-privileges"} <= set(words)
    assert not {"--mount", "--volume", "--privileged", "--device"} & set(words)


@pytest.mark.parametrize("status", ["1", "137", ""])
def test_where_it_fails_the_start_does(tmp_path: object, status: str) -> None:
    """HLD-7: one line with what it said and what to write instead; it is removed then, too."""
    engine = Said(status)
    with pytest.raises(StartError) as caught:
        relay_rules.lay(engine, way(tmp_path), "relay1")
    assert (caught.value.code, caught.value.exit_status) == ("capture", 78)
    assert "the table: Operation not permitted" in caught.value.what
    assert "--capture off" in caught.value.fix
    assert engine.asked[-1][0] == "rm"


def test_a_proof_that_says_nothing_is_none(tmp_path: object) -> None:
    """HLD-11: only that one line is a proof."""
    with pytest.raises(StartError) as caught:
        relay_rules.prove(Said("0"), way(tmp_path), "relay1")
    assert caught.value.code == "self-test"


def test_look_ups_are_asked_of_the_gate_where_they_are_captured(tmp_path: object) -> None:
    """HLD-6: and of nobody where they are not."""
    assert [relay_rules.name_server(way(tmp_path, one)) for one in (ON, OFF)] == [GATE4, ""]


def test_its_filter_lets_netfilter_through_and_nothing_else() -> None:
    """HLD-13: the one rule that differs is that of netlink's protocols: 12 may be, 11 and 13 may not."""
    plain, rules = (json.loads(profile("x86_64", rules=one))["syscalls"] for one in (False, True))
    other = [one for one in (*plain, *rules) if (one in plain) is not (one in rules)]
    assert {(*one["names"], one["args"][0].get("valueTwo")) for one in other} == {("socket", 16)}
    numbers = {
        argument["valueTwo"]
        for one in rules
        if one["names"] == ["socket"] and one["args"][0].get("valueTwo") == 16
        for argument in one["args"]
        if argument["index"] == 2 and argument["op"] == "SCMP_CMP_MASKED_EQ"
    }
    assert numbers == set(range(1, 12))
