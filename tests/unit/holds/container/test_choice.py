"""choice.py: which transport an engine gets, and what is remembered of it; for real in tests/holds/test_relays.py."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.unit.holds.container.test_vm_transport import Known
from tidegate.holds.container import choice
from tidegate.holds.container.choice import choose, forget, known
from tidegate.holds.container.engine import DOCKER, Engine
from tidegate.model.errors import StartError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

HERE, ELSEWHERE = Known("docker", in_vm=False), Known("docker", in_vm=True)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What each transport's probe says: the code of an error, '' for well; and in `asked` who was asked."""
    said = {"enter": "", "relay": "", "vm": "", "asked": ""}

    def asked(name: str) -> StartError | None:
        said["asked"] += f"{name} "
        return StartError(name, code=said[name]) if said[name] else None

    monkeypatch.setattr(choice.ENTERING.__class__, "probe", lambda _self, _engine: asked("enter"))
    monkeypatch.setattr(choice.RelayTransport, "probe", lambda _self, _engine: asked("relay"))
    monkeypatch.setattr(choice.VmTransport, "probe", lambda _self, _engine: asked("vm"))
    return said


def test_a_transport_can_be_named() -> None:
    """`--transport` forces one, and a wrong name is refused (HLD-4)."""
    for name in ("enter", "relay", "vm"):
        assert choose(HERE, name).name == name
    with pytest.raises(UsageError, match="no transport 'pigeon'"):
        choose(Engine(DOCKER), "pigeon")


def test_what_is_on_another_kernel_is_not_entered() -> None:
    """HLD-7: its process numbers are somebody else's here."""
    with pytest.raises(StartError) as caught:
        choose(ELSEWHERE, "enter")
    assert caught.value.fix == "--transport vm"


@pytest.mark.parametrize(
    ("engine", "enter", "relay", "vm", "found", "asked"),
    [
        (HERE, "", "", "", "enter", "enter"),
        (HERE, "transport-enter", "", "", "relay", "enter relay"),
        (HERE, "transport-enter", "socket-denied", "", "!socket-denied", "enter relay"),
        (HERE, "transport-enter", "relay-image", "", "!relay-image", "enter relay"),
        (HERE, "transport-enter", "socket-check", "", "!socket-check", "enter relay"),
        (HERE, "self-test", "", "", "!self-test", "enter"),
        (HERE, "engine-down", "", "", "!engine-down", "enter"),
        (ELSEWHERE, "", "", "", "relay", "relay"),
        (ELSEWHERE, "", "socket-vm", "", "vm", "relay vm"),
        (ELSEWHERE, "", "socket-vm", "relay-image", "!relay-image", "relay vm"),
        (ELSEWHERE, "", "socket-denied", "", "!socket-denied", "relay"),
    ],
)
def test_the_next_one_is_taken_for_one_reason_only(
    probes: dict[str, str], engine: Engine, enter: str, relay: str, vm: str, found: str, asked: str
) -> None:
    """HLD-4, HLD-7: what may not be entered is relayed, what reaches no socket in a virtual machine is carried."""
    probes |= {"enter": enter, "relay": relay, "vm": vm}
    if found.startswith("!"):
        with pytest.raises(StartError) as caught:
            choose(engine)
        assert caught.value.code == found[1:]
    else:
        assert choose(engine).name == found
    assert probes["asked"].strip() == asked


def test_what_was_found_is_remembered_until_it_fails(probes: dict[str, str], tmp_path: Path) -> None:
    """HLD-4: once per engine; another engine, or the same after a failure, is looked at anew."""
    state = str(tmp_path)
    probes["enter"] = "transport-enter"
    assert choose(HERE, state=state).name == "relay"
    assert known(HERE, state) == "relay"
    probes["enter"] = ""
    assert choose(HERE, state=state).name == "relay"
    assert probes["asked"].split() == ["enter", "relay"]
    assert choose(Known("podman", in_vm=False), state=state).name == "enter"
    assert choose(Known("docker", in_vm=False, DOCKER_HOST="unix:///x"), state=state).name == "enter"
    forget(HERE, state)
    assert known(HERE, state) == ""
    assert choose(HERE, state=state).name == "enter"
    path = tmp_path / choice.FILE
    assert path.stat().st_mode & 0o077 == 0
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"x": 1}'])
def test_a_memory_that_is_none_is_found_again(probes: dict[str, str], tmp_path: Path, text: str) -> None:
    """HLD-7: it decides nothing; so does one that names what there is not."""
    state = str(tmp_path)
    choose(HERE, state=state)
    path = tmp_path / choice.FILE
    good = path.read_text()
    path.write_text(text or good.replace("enter", "pigeon"))
    assert choose(HERE, state=state).name == "enter"
    assert probes["asked"].split() == ["enter", "enter"]
    assert path.read_text() == good or text == '{"x": 1}'
