"""The secrets of a server's task: their names and its stand-ins, which outlive the server, and never a value (INS-5).

Rules of the file:

* A task has one stand-in for each of its secrets as long as it lives, whatever server it is behind: what it was given
  in its environment stays true. Stand-ins are in its record; they are worth nothing to whoever reads it.
* A value is asked of its source for each command, by the server, with the environment of whoever starts that command,
  and is in the memory of the gate from then on. One that has another shape by now does not get under the stand-in that
  the task has: the command does not start.
* Keys of an agent's model (model_keys.py) are in no store, and are for the agent's own command alone (POL-12).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tidegate.inspect.placeholder import LEAST
from tidegate.model.errors import StartError, UsageError
from tidegate.model.host import bracketed, canonical_host
from tidegate.runtime.inspection import need_readable
from tidegate.runtime.model_keys import from_plain
from tidegate.runtime.secret_store import is_name, load_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tidegate.inspect.secrets import Vault
    from tidegate.model.seams import Inspector
    from tidegate.policy.policy import Policy
    from tidegate.runtime.secret_store import Stored


class TaskSecrets:
    """See the head of the file. `uses` says of each what it belongs to, as it was when it was asked for last."""

    def __init__(self, uses: Iterable[tuple[str, tuple[tuple[str, int], ...], str]] = ()) -> None:
        self.uses = tuple(uses)  # name, hosts, variable
        self.keys: tuple[Stored, ...] = ()  # those of `uses` that are keys of an agent's model
        self.stand_ins: dict[str, str] = {}
        self.opening = asyncio.Lock()  # two commands that begin at once get one stand-in

    def __bool__(self) -> bool:
        return bool(self.uses)

    def names_of(self, *, agent: bool) -> tuple[str, ...]:
        """Return the names of those that a command has, the `agent`'s or another."""
        count = len(self.uses) if agent else len(self.uses) - len(self.keys)
        return tuple(name for name, _hosts, _variable in self.uses[:count])

    @property
    def hosts(self) -> tuple[str, ...]:
        """The canonical hosts they are for."""
        return tuple(dict.fromkeys(host for _name, hosts, _variable in self.uses for host, _port in hosts))

    def add_keys(self, told: Iterable[Any]) -> None:
        """Take the keys that a front has told of in as secrets."""
        keys = from_plain(told)
        self.keys += keys
        self.uses += _used(keys)

    def variables_of(self, *, agent: bool) -> tuple[str, ...]:
        """Return the variables that hold the stand-ins of a command, of the `agent`'s or of another."""
        count = len(self.uses) if agent else len(self.uses) - len(self.keys)
        return tuple(variable for _name, _hosts, variable in self.uses[:count])

    def shown(self) -> list[dict[str, Any]]:
        """Return them as the API shows them: neither values nor stand-ins."""
        return [
            {
                "name": name,
                "hosts": shown_hosts(hosts),
                "variable": variable,
            }
            for name, hosts, variable in self.uses
        ]

    def kept(self) -> dict[str, Any]:
        """Return what a task's record keeps, as JSON has it."""
        keys = tuple((key.variable, key.hosts, key.place, key.field) for key in self.keys)
        return {"uses": self.uses[: len(self.uses) - len(keys)], "stand_ins": self.stand_ins, "keys": keys}

    @classmethod
    def of_record(cls, kept: Mapping[str, Any] | None) -> TaskSecrets:
        """Return those of a task that a server before this one left.

        Raises:
            KeyError, TypeError, ValueError: when it is no such record.
        """
        if kept is None:
            return cls()
        uses = [
            (str(name), tuple((str(host), int(port)) for host, port in hosts), str(variable))
            for name, hosts, variable in kept["uses"]
        ]
        found = cls(uses)
        found.add_keys(kept.get("keys", ()))
        found.stand_ins = {str(name): str(text) for name, text in kept["stand_ins"].items()}
        return found


def _used(stored: Iterable[Stored]) -> tuple[tuple[str, tuple[tuple[str, int], ...], str], ...]:
    return tuple((one.name, one.hosts, one.variable) for one in stored)


def shown_hosts(hosts: Iterable[tuple[str, int]]) -> list[str]:
    """Return hosts as they are written, each with its port."""
    return [f"{bracketed(host)}:{port}" for host, port in hosts]


def checked(state: str, names: Iterable[str], policy: Policy) -> TaskSecrets:
    """Return the secrets of a new task. It may wait for the disk.

    Raises:
        UsageError: for what is no name.
        StartError: where there is no such secret, two are for one variable, or the policy has one's host never read.
    """
    wanted = tuple(dict.fromkeys(names))
    for name in wanted:
        if not is_name(name):
            raise UsageError(
                f"{ascii(name)[:80]} is not the name of a secret", fix="tidegate secret list", code="secret"
            )
    return TaskSecrets(_uses(state, wanted, policy))


def _uses(state: str, names: Iterable[str], policy: Policy) -> tuple[tuple[str, tuple[tuple[str, int], ...], str], ...]:
    stored: tuple[Stored, ...] = load_all(state, names)
    need_readable(policy, stored)
    return _used(stored)


def need_covered(secrets: TaskSecrets, inspector: Inspector | None) -> None:
    """See that each host can be read by the authority that the task trusts, where it has one already.

    Raises:
        StartError: where a person has led a secret to another host since: there its stand-in would stay one.
    """
    for name, hosts, _variable in secrets.uses if inspector is not None else ():
        for host, port in hosts:
            if not inspector.covers(canonical_host(bracketed(host))):  # type: ignore[union-attr]
                raise StartError(
                    f"the secret {name} is for {bracketed(host)}:{port} by now, which this task does not trust the gate"
                    " to read: its authority is for the hosts that it began with",
                    fix="begin another task",
                    code="secret-host",
                )


def opened(
    state: str, secrets: TaskSecrets, environ: Mapping[str, str], policy: Policy, *, agent: bool = False
) -> tuple[Vault, dict[str, str]]:
    """Get the values, and return them with the variables that are another in the task. It may wait for a program.

    Hosts and variables are those of now, where a person has set one of them again. Keys are got for the `agent`'s
    command alone; another one has its stand-in in their place, which no host takes from it.

    Raises:
        StartError: where one cannot be had or read, or does not fit the task's stand-in.
    """
    from tidegate.runtime.inspection import keep_no_core
    from tidegate.runtime.secret_sources import open_secrets

    keep_no_core()
    stored = secrets.names_of(agent=False)
    secrets.uses = _uses(state, stored, policy) + _used(secrets.keys)
    vault, variables = open_secrets(state, stored, environ, secrets.stand_ins, secrets.keys if agent else ())
    return vault, variables if agent else _without_keys(secrets, environ, variables)


def _without_keys(secrets: TaskSecrets, environ: Mapping[str, str], variables: dict[str, str]) -> dict[str, str]:
    # The agent can read what another command of its task has in its environment.
    for key in secrets.keys:
        value = environ.get(key.variable, "")
        stand_in = secrets.stand_ins.get(f"${key.variable}", "")
        for name, text in environ.items() if value else ():
            if name == key.variable or (len(value) >= LEAST and value in text):
                variables[name] = variables.get(name, text).replace(value, stand_in)
    return variables
