"""What `policy learn` and `policy new-hosts` share: records that a person named, and what to say of them (JRN-7)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tidegate.addresses.classify import classify
from tidegate.cli.events import find_task
from tidegate.cli.policy.options import judge_of, this_machine
from tidegate.journal.contacts import Record
from tidegate.journal.verify import verify
from tidegate.model.address_class import AddressClass
from tidegate.model.errors import StartError, TidegateError, UsageError
from tidegate.model.host import HostError, bracketed, canonical_host
from tidegate.policy.positions import on_screen
from tidegate.policy.proposal import some
from tidegate.runtime.state import LOG_NAME, key_folder, log_folder, state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tidegate.model.decision import Decision
    from tidegate.policy.policy import Policy


class Named:
    """A record and how a person named it."""

    def __init__(self, text: str) -> None:
        self.text = on_screen(text, 200)
        self.by_id = os.sep not in text and not os.path.lexists(text)
        path = _of_task(text) if self.by_id else text
        self.record = Record(path, rotated=os.path.basename(path) == LOG_NAME)


def _of_task(text: str) -> str:
    state = state_folder(os.environ)
    try:
        name = find_task(state, text)
    except TidegateError as error:
        raise UsageError(error.what, fix=error.fix) from None  # what is wrong is the command line
    path = os.path.join(state, "tasks", name, LOG_NAME)
    if not os.path.lexists(path):
        raise UsageError(
            f"the task {name} has no record here: it did not begin, or --log named another file", fix="name that file"
        )
    return path


def opened(texts: Iterable[str]) -> list[Named]:
    """Open records by task ids or paths, one after the other; the same one twice counts once.

    Raises:
        UsageError: for what is no task.
    """
    found: dict[str, Named] = {}
    for text in texts:
        named = Named(text)
        found.setdefault(os.path.realpath(named.record.path), named)
    return list(found.values())


def remarks(named: Named) -> list[str]:
    """Return what a person must know of a record that was read to its end."""
    record, text = named.record, named.text
    said = []
    if record.empty:
        said.append(f"{text} has no connection at all: nothing in it was looked at")
    if record.torn:
        said.append(f"the last line of {text} is not whole, and was left out")
    if record.lost:
        said.append(f"{text} lacks {some(record.lost, 'connection')}: lost, or more than fits")
    if record.folded:
        said.append(f"{text} lacks the hosts of {some(record.folded, 'refusal')}: the task tried too many at once")
    if record.cut:
        said.append(f"{text} is as long as a record gets: what is older may be gone")
    if record.alive:
        said.append(f"{text} is still written: connections that are open now are not in it yet")
    if record.owner != os.geteuid():
        said.append(f"{text} belongs to another user (uid {record.owner}), who can have written anything into it")
    return said


def forged(records: Iterable[Named]) -> str:
    """Say that what seals the tasks' refusals is not whole, where tasks were named by their ids; '' where all is well.

    A task's record has no seals. Who has changed the action log beside it could have changed it as well.
    """
    state = state_folder(os.environ)
    folder = log_folder(state)
    if not any(named.by_id for named in records) or not os.path.isdir(folder):
        return ""
    try:
        found = verify(folder, key_folder(state))
    except (OSError, StartError):
        return "the action log beside these records cannot be verified: see tidegate log verify"
    return "" if found.ok else "the action log beside these records does not verify: see tidegate log verify"


def class_of() -> Callable[[str], AddressClass]:
    """Return what tells the class of an address by its text; what is none is public, as nothing is known of it."""
    own = this_machine().own

    def find(text: str) -> AddressClass:
        packed = packed_of(text)
        return AddressClass.PUBLIC if packed is None else classify(packed, own)

    return find


def packed_of(text: str) -> bytes | None:
    """Return the packed form of an address, None for what is none."""
    try:
        return canonical_host(bracketed(text)).packed
    except HostError:
        return None


def judge(policy: Policy, decision: Decision, address: str) -> Decision:
    """Return a decision as an address leaves it (addresses.admit)."""
    packed = packed_of(address)
    return decision if packed is None else judge_of(policy, decision.phase, (packed,))(decision)
