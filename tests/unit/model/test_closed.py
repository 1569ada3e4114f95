"""Closed sets: what is used of enum.Enum, and that nothing is loaded for it."""

from __future__ import annotations

import copy
import enum
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.model.closed import Closed, ClosedNumber
from tidegate.model.reason import Reason
from tidegate.model.rule import Layer, Origin
from tidegate.model.verdict import Phase, Verdict

SOURCE = str(Path(__file__).parents[3] / "src")


class Fruit(Closed):
    """With words of their own."""

    APPLE = ("apple", 3)
    PEAR = ("pear", 2)

    word: str
    count: int

    def __init__(self, word: str, count: int) -> None:
        self.word = word
        self.count = count

    @property
    def many(self) -> str:
        """Said twice."""
        return self.word * 2


def test_members_are_one_each_and_in_order() -> None:
    """DESIGN: closed sets with a stable code; by value, by name, by themselves."""
    assert list(Phase) == [Phase.INSTALL, Phase.RUNTIME]
    assert list(reversed(Phase)) == [Phase.RUNTIME, Phase.INSTALL]
    assert len(Verdict) == 3
    assert Phase("install") is Phase.INSTALL is Phase["INSTALL"] is Phase(Phase.INSTALL)
    assert (Phase.INSTALL.name, Phase.INSTALL.value) == ("INSTALL", "install")
    assert Phase.INSTALL in Phase
    assert Verdict.ALLOW not in Phase  # type: ignore[operator,comparison-overlap]
    assert repr(Phase.INSTALL) == "<Phase.INSTALL: 'install'>"
    assert str(Phase.INSTALL) == f"{Phase.INSTALL}" == "Phase.INSTALL"
    assert {Phase.INSTALL: 1}[Phase("install")] == 1
    assert Phase
    assert isinstance(Phase.INSTALL, Phase)


@pytest.mark.parametrize("value", ["INSTALL", "", None, [], {}, 0, Verdict.ALLOW])
def test_what_is_no_value_is_an_error(value: object) -> None:
    """POL-10: the same error as before, for what cannot be hashed too."""
    with pytest.raises(ValueError, match="is not a valid Phase"):
        Phase(value)
    with pytest.raises(KeyError):
        Phase["install"]


def test_a_member_cannot_be_replaced() -> None:
    """DESIGN: closed is closed."""
    with pytest.raises(AttributeError, match="ALLOW"):
        Verdict.ALLOW = Verdict.DENY  # type: ignore[misc]
    assert Verdict("allow") is Verdict.ALLOW


def test_two_members_with_one_value_are_a_mistake() -> None:
    """DESIGN: a code says one thing."""
    with pytest.raises(TypeError, match=r"Twice\.B"):

        class Twice(Closed):
            A = 1
            B = 1


def test_members_may_have_words_of_their_own() -> None:
    """DESIGN: Reason has a word, a sentence, a status; they come from its value."""
    assert [one.many for one in Fruit] == ["appleapple", "pearpear"]
    assert Fruit.PEAR.count == 2
    assert Fruit(("apple", 3)) is Fruit.APPLE
    assert Reason.NO_RULE.word == "no-rule"
    assert Reason.NO_RULE.value[0] == "no-rule"


def test_numbers_are_numbers() -> None:
    """POL-8: layers are compared, stages index a table, JSON has them as numbers."""
    assert Layer.USER < Layer.FOLDER
    assert max(Origin) is Origin.WRITTEN
    assert Origin(3) is Origin.WRITTEN
    assert [10, 20, 30, 40][Origin.REMEMBERED] == 30
    assert json.dumps([Layer.USER]) == "[2]"
    assert str(Layer.USER) == f"{Layer.USER}" == "2"
    assert f"{Layer.USER:03}" == "002"
    assert hash(Layer.USER) == hash(2)
    assert isinstance(Layer.USER, ClosedNumber)
    with pytest.raises(ValueError, match="9 is not a valid Layer"):
        Layer(9)


@pytest.mark.parametrize("member", [Phase.INSTALL, Layer.USER, Reason.NO_RULE])
def test_copies_are_the_member_itself(member: enum.Enum) -> None:
    """DESIGN: one object for each member, however it travels."""
    assert pickle.loads(pickle.dumps(member)) is member
    assert copy.copy(member) is copy.deepcopy(member) is member


def test_nothing_is_loaded_for_it() -> None:
    """HLD-11: every start waits for what is loaded; the whole set of reasons brings no module of Python's own."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import tidegate.model.reason; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, SOURCE], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"enum", "functools", "collections", "types"} & set(done.stdout.split())
