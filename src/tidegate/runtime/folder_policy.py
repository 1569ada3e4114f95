"""A folder's own `tidegate.yaml`, which lies where a task can write (POL-9).

It counts only when a person has trusted exactly these bytes (`tidegate policy trust`), or says so for one run
(`--trust-folder`). The bytes that are compared are the bytes that are parsed. Any other file stops the start, with what
it would newly let through: using it unasked would let the task write its own policy, and leaving it aside unasked would
drop its denies.
"""

from __future__ import annotations

import os

from tidegate.model.errors import StartError, UsageError
from tidegate.model.rule import Layer
from tidegate.model.value import Value
from tidegate.model.verdict import Verdict
from tidegate.policy.layers import PolicyLayer, join
from tidegate.policy.rows import PHASE, VERDICT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.policy.diff import PolicyDiff
    from tidegate.state.store import Trust

FOLDER_FILE = "tidegate.yaml"
NEAR_FILE = "tidegate.yml"  # what people mistype; passing over it in silence would drop its denies
MAX_LINES = 20  # of a diff before a start that is refused
_CODE = "untrusted-folder"


class FolderPolicy(Value):
    """What lies in a folder: its bytes, what was trusted there before, and whether it counts."""

    folder: str
    data: bytes
    known: Trust | None
    trusted: bool

    def layer(self) -> PolicyLayer:
        """Return what it says.

        Raises:
            UsageError: when its text is wrong.
        """
        return _layer(self.data)

    def layer_between(self, below: Sequence[PolicyLayer], above: Sequence[PolicyLayer]) -> PolicyLayer:
        """Return what it says where it counts.

        Raises:
            StartError: where it does not, with what it would newly let through between these layers.
            UsageError: when it counts and its text is wrong.
        """
        if self.trusted:
            return self.layer()
        what = "has changed since it was trusted" if self.known is not None else "is not trusted"
        ways = "look at it, then: tidegate policy trust (for good), --trust-folder (this once) or --no-folder-policy"
        try:
            lines = self.more(below, above)
        except UsageError as error:
            lines = [*str(error).splitlines()[:MAX_LINES], "until its text is right it cannot be trusted"]
        raise StartError(f"the {FOLDER_FILE} of this folder {what}", fix="\n  ".join([ways, *lines]), code=_CODE)

    def diff(self, below: Sequence[PolicyLayer] = (), above: Sequence[PolicyLayer] = ()) -> PolicyDiff:
        """Return what it newly lets through between these layers, against what was trusted before, or against none.

        Raises:
            UsageError: when its text is wrong.
        """
        from tidegate.policy.diff import diff

        before = [*below, *([_layer(self.known.text)] if self.known is not None else []), *above]
        return diff(join(*before), join(*below, self.layer(), *above))

    def more(self, below: Sequence[PolicyLayer] = (), above: Sequence[PolicyLayer] = ()) -> list[str]:
        """Return the same as lines for people, at most MAX_LINES of a kind and two more."""
        found = self.diff(below, above)
        dropped = self._dropped()
        lines = [*map(str, found.hosts), *found.settings]
        said = _some("it would newly let through:", lines)
        # Whether that lets something through is up to what is remembered and to the options of each run.
        said += _some("it no longer refuses, or asks for:", dropped)
        return said or ["it would let nothing more through"]

    def _dropped(self) -> list[str]:
        """Its denies and asks that were trusted here and are no more."""
        if self.known is None:
            return []
        stricter = [
            [(row[PHASE], row[0]) for row in layer.rows if row[VERDICT] != Verdict.ALLOW.value]
            for layer in (_layer(self.known.text), self.layer())
        ]
        return [f"{phase}: {text}" for phase, text in stricter[0] if (phase, text) not in stricter[1]]


def _some(title: str, lines: list[str]) -> list[str]:
    """A title and at most MAX_LINES lines, or nothing where there are none."""
    left = len(lines) - MAX_LINES
    return [title, *lines[:MAX_LINES], *([f"and {left} more"] if left > 0 else [])] if lines else []


def folder_policy(folder: str, state: str, *, trusted: bool = False) -> FolderPolicy | None:
    """Return what lies in a folder, None where there is nothing; `trusted` is a person's word for one run.

    Raises:
        StartError: when it is a link, when only a near name lies there, or when what is or was trusted is not there.
        UsageError: when it cannot be read.
    """
    path = os.path.join(folder, FOLDER_FILE)
    if not os.path.lexists(path):
        if os.path.lexists(os.path.join(folder, NEAR_FILE)):
            raise StartError(
                f"this folder has a {NEAR_FILE}, which is never read",
                fix=f"rename it to {FOLDER_FILE}, or leave it aside with --no-folder-policy",
                code=_CODE,
            )
        if trusted:
            # The task could write one, and the next run would trust it unseen.
            raise StartError(
                f"--trust-folder: this folder has no {FOLDER_FILE}", fix="leave the option out", code=_CODE
            )
        if known_trust(folder, state) is not None:
            # Leaving it aside unasked would drop its denies, and what it closes.
            raise StartError(
                f"this folder's {FOLDER_FILE}, which was trusted, is gone",
                fix="put it back; or tidegate policy untrust (for good), --no-folder-policy (this once)",
                code=_CODE,
            )
        return None
    from tidegate.runtime.policy_sources import read_policy_file

    data = read_policy_file(path, folder=True)
    known = known_trust(folder, state)
    return FolderPolicy(folder, data, known, trusted or (known is not None and known.text == data))


def known_trust(folder: str, state: str) -> Trust | None:
    """Return what a person has trusted in this folder.

    Raises:
        StartError: when the store cannot be read: what was trusted is not known then.
    """
    from tidegate.state.folders import STORE_FILE, folder_key

    if not os.path.lexists(os.path.join(state, STORE_FILE)):
        return None  # asked at each start: without loading a database
    from tidegate.state.sqlite import read_store

    store = read_store(state)
    if store is None:
        return None
    try:
        return store.trusted(folder_key(folder))
    finally:
        store.close()


def _layer(data: bytes) -> PolicyLayer:
    from tidegate.policy.loader import load_policy

    return load_policy(data, FOLDER_FILE, Layer.FOLDER, folder=True)
