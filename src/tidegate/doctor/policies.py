"""Whether the policies that every run reads can be read: the administrator's and the user's (POL-8).

And of a Kraft file that is named, what each of its repositories reaches (POL-15).
"""

from __future__ import annotations

import os

from tidegate.doctor.check import FAIL, OK, WARN, Check
from tidegate.model.errors import StartError, TidegateError
from tidegate.model.rule import Layer
from tidegate.policy.loader import load_policy
from tidegate.runtime.administrator import FILE, administrator_layer
from tidegate.runtime.imported_policy import import_file
from tidegate.runtime.policy_sources import USER_FILE, read_policy_file
from tidegate.runtime.state import config_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def check_policies(environ: Mapping[str, str]) -> list[Check]:
    """Return a row for each policy that is there; none for those that are not."""
    rows = []
    try:
        layer = administrator_layer()
    except TidegateError as error:
        rows.append(Check("administrator's policy", FAIL, _first(error), error.fix or f"see {FILE}"))
    else:
        if layer is not None:
            locks = ", ".join(layer.locks)
            rows.append(Check("administrator's policy", OK, f"it forbids {locks}" if locks else ""))
    try:
        user_file = os.path.join(config_folder(environ), USER_FILE)
    except StartError:
        return rows  # the row of the state folder says it
    if os.path.lexists(user_file):
        rows.append(_user(user_file))
    return rows


def check_egress(path: str) -> list[Check]:
    """Return a row for each repository of a Kraft file: what its sandboxes reach (POL-15)."""
    try:
        data = read_policy_file(path)
        found = import_file(data, path, folder="", dialect="kraft", first=True)
    except TidegateError as error:
        return [Check("egress", FAIL, _first(error), error.fix)]
    rows = found.egress if found is not None else ()
    if not rows:
        return [Check("egress", FAIL, f"{path} names no repository", "give Kraft's config/repos.yaml")]
    return [Check(f"egress of {row.name}", row.state, row.what, row.fix) for row in rows]


def _user(path: str) -> Check:
    try:
        layer = load_policy(read_policy_file(path), path, Layer.USER)
    except TidegateError as error:
        return Check("your policy", FAIL, _first(error), f"tidegate policy check {path}")
    if layer.profile == "audit":
        return Check("your policy", WARN, "its profile audit lets everything through", "name another in it: balanced")
    return Check("your policy", OK)


def _first(error: TidegateError) -> str:
    return error.what.splitlines()[0]
