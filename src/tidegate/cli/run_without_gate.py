"""A run whose `--policy` file asks for no gate: Kraft's `unrestricted_network`, and flags in a file of Kule's (POL-15).

The file says it by name, and a person named the file; it is said at each start, and what the administrator forbids
stays forbidden. What has no meaning without a gate is refused, and so is a hold that was named beside it: nobody's
`--deny`, and no container, is left out silently. A file that lies where the task can write does not open the network:
another task may have written it.
"""

from __future__ import annotations

import os

from tidegate.cli.main import say
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.cli.run_options import RunOptions
    from tidegate.model.errors import WithoutGateError

_OF_A_GATE = {
    "allow": "--allow", "deny": "--deny", "ask_for": "--ask-for", "profile": "--profile", "registries": "--registries",
    "harness": "--harness", "fail_on_refusal": "--fail-on-refusal", "ask": "--ask", "wait": "--wait",
    "secrets": "--secret", "publish": "--publish",
}  # fmt: skip
_OFFLINE = _OF_A_GATE | {"ssh_keys": "--ssh-key"}


def as_without_gate(options: RunOptions, error: WithoutGateError) -> RunOptions:
    """Return the options of the same run in the hold that the file asks for, and say so.

    Raises:
        StartError: where an option beside it would be lost.
    """
    if options.hold_is_named:
        raise StartError(f"{error.what}, and --hold {options.hold} has one", fix="leave --hold out", code=error.code)
    for name, option in (_OFFLINE if error.hold == "offline" else _OF_A_GATE).items():
        if getattr(options, name):
            raise StartError(f"{error.what}; {option} has no meaning there", fix=f"leave {option} out", code=error.code)
    writable = [os.getcwd(), *(share.path for share in options.shares if not share.readonly)]
    if error.hold == "open" and any(_is_below(options.policy, folder) for folder in writable):
        what = f"{error.what}, and the file lies where tasks write"
        raise StartError(what, fix="give --open-network in place of --policy", code=error.code)
    say(f"warning: {error.what}")
    return options.replace(hold=error.hold, hold_is_named=True, capture="off")


def _is_below(path: str, folder: str) -> bool:
    real, above = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath((real, above)) == above
