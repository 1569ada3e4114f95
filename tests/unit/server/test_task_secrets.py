"""What a task's record keeps of secrets; a whole server with them is in tests/clients/test_secrets.py."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.unit.server.kit import policy
from tidegate.model.errors import StartError, UsageError
from tidegate.model.rule import Layer
from tidegate.policy.layers import join
from tidegate.policy.loader import load_policy
from tidegate.runtime import secret_store
from tidegate.runtime.secret_store import Stored
from tidegate.server.task_secrets import TaskSecrets, checked, opened

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "ghp_abcdefgh12345678"
POLICY = policy("a.test")


def keep(state: Path, name: str = "TOKEN", variable: str = "TOKEN") -> None:
    """A secret whose value is in the environment."""
    hosts = (("a.test", 443), ("2001:db8::1", 8443))
    secret_store.save(str(state), Stored(name, hosts, "bearer", "", variable, "env", ("MINE",)))


def test_a_record_has_no_value(tmp_path: Path) -> None:
    """INS-5: names, hosts and stand-ins go into a record and come back; what is shown has not even a stand-in."""
    keep(tmp_path)
    found = checked(str(tmp_path), ["TOKEN", "TOKEN"], policy("a.test"))
    _vault, variables = opened(str(tmp_path), found, {"MINE": VALUE, "ALSO": f"x{VALUE}"}, POLICY)
    stand_in = found.stand_ins["TOKEN"]
    assert variables == {"TOKEN": stand_in, "MINE": stand_in, "ALSO": f"x{stand_in}"}
    text = json.dumps(found.kept())
    assert VALUE not in text
    again = TaskSecrets.of_record(json.loads(text))
    assert (again.uses, again.stand_ins, again.hosts) == (found.uses, found.stand_ins, ("a.test", "2001:db8::1"))
    assert again.shown() == [{"name": "TOKEN", "hosts": ["a.test:443", "[2001:db8::1]:8443"], "variable": "TOKEN"}]
    assert not TaskSecrets.of_record(None)


def test_a_stand_in_stays_and_a_value_may_change(tmp_path: Path) -> None:
    """INS-5: a new value of the same shape goes under the same stand-in; one of another shape is refused by name."""
    keep(tmp_path)
    found = checked(str(tmp_path), ["TOKEN"], policy("a.test"))
    first = opened(str(tmp_path), found, {"MINE": VALUE}, POLICY)[1]["TOKEN"]
    assert opened(str(tmp_path), found, {"MINE": "ghp_zyxwvuts87654321"}, POLICY)[1]["TOKEN"] == first
    for other in (VALUE + "9", "ghp-abcdefgh12345678", first):
        with pytest.raises(StartError, match="another shape") as caught:
            opened(str(tmp_path), found, {"MINE": other}, POLICY)
        assert other not in str(caught.value)


def test_what_cannot_be_given_is_refused_when_the_task_is_made(tmp_path: Path) -> None:
    """INS-5, INS-9: no name, no secret, two for one variable, a host that is never read."""
    for name in ("", "../x", "A-B"):
        with pytest.raises(UsageError):
            checked(str(tmp_path), [name], policy("a.test"))
    with pytest.raises(StartError, match="there is no secret"):
        checked(str(tmp_path), ["TOKEN"], policy("a.test"))
    keep(tmp_path)
    keep(tmp_path, "OTHER")
    with pytest.raises(StartError, match="both for"):
        checked(str(tmp_path), ["TOKEN", "OTHER"], policy("a.test"))
    never = join(load_policy(b"inspect: {never: [a.test]}\nnetwork: {runtime: {allow: [a.test]}}", "p", Layer.USER))
    with pytest.raises(StartError, match="inspect: never"):
        checked(str(tmp_path), ["TOKEN"], never)
    assert os.listdir(tmp_path) == ["secrets"]


def test_where_it_belongs_is_what_a_person_said_last(tmp_path: Path) -> None:
    """INS-5, INS-9: set again for another variable and host: the next command has these; one never read is refused."""
    keep(tmp_path)
    found = checked(str(tmp_path), ["TOKEN"], POLICY)
    before = opened(str(tmp_path), found, {"MINE": VALUE}, POLICY)[1]["TOKEN"]
    keep(tmp_path, variable="OTHER")
    vault, variables = opened(str(tmp_path), found, {"MINE": VALUE}, POLICY)
    assert (found.variables_of(agent=True), variables["OTHER"]) == (("OTHER",), before)
    assert vault.hosts == found.hosts
    never = join(load_policy(b"inspect: {never: [a.test]}\nnetwork: {runtime: {allow: [a.test]}}", "p", Layer.USER))
    with pytest.raises(StartError, match="inspect: never"):
        opened(str(tmp_path), found, {"MINE": VALUE}, never)


def test_a_key_of_the_agents_model_is_the_agents_alone(tmp_path: Path) -> None:
    """INS-8, POL-12: in no store, opened for its own command only, and kept in the record as names and a stand-in."""
    keep(tmp_path)
    found = checked(str(tmp_path), ["TOKEN"], POLICY)
    key = "sk-abcdefgh12345678"
    found.add_keys([["OPENAI_API_KEY", [["api.openai.com", 443]], "bearer", ""]])
    environ = {"MINE": VALUE, "OPENAI_API_KEY": key}
    vault, variables = opened(str(tmp_path), found, environ, POLICY, agent=True)
    assert vault.belong("api.openai.com", 443)
    assert len(variables["OPENAI_API_KEY"]) == len(key) != variables["OPENAI_API_KEY"].count(key)
    assert found.variables_of(agent=True) == ("TOKEN", "OPENAI_API_KEY")
    vault, variables = opened(str(tmp_path), found, environ, POLICY)
    assert not vault.belong("api.openai.com", 443)
    stand_in = found.stand_ins["$OPENAI_API_KEY"]
    assert variables["OPENAI_API_KEY"] == stand_in  # the agent could read it in the other command's environment
    more = {"A": f"key={key}", "OPENAI_API_KEY": key, "MINE": VALUE, "PATH": "/bin"}
    variables = opened(str(tmp_path), found, more, POLICY)[1]
    assert (variables["A"], "PATH" in variables, key in str(variables)) == (f"key={stand_in}", False, False)
    short = opened(str(tmp_path), found, environ | {"OPENAI_API_KEY": "a", "PATH": "/a"}, POLICY)[1]
    assert (short["OPENAI_API_KEY"], "PATH" in short) == (stand_in, False)
    assert found.variables_of(agent=False) == ("TOKEN",)
    text = json.dumps(found.kept())
    assert key not in text
    again = TaskSecrets.of_record(json.loads(text))
    assert (again.uses, again.keys, again.stand_ins) == (found.uses, found.keys, found.stand_ins)
