"""The packages that read inside TLS: part of a clone's set-up, and seen to again before a task that needs them."""

from __future__ import annotations

from tidegate.model.errors import StartError
from tidegate.runtime.inspection import CODINGS, PACKAGES, missing, only_registries, wants_inspection, without_packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.policy.policy import Policy


def ensure_for(policy: Policy, say: Callable[[str], None], *, secrets: bool = False) -> None:
    """See that they are there, where the policy or a secret wants something read.

    Raises:
        StartError: when they are not there and cannot be installed.
    """
    if not (secrets or wants_inspection(policy)) or not missing():
        return
    try:
        ensure_packages(say)
    except StartError as error:
        if secrets or not only_registries(policy):
            raise
        raise without_packages(policy, error.what, error.fix) from None


def ensure_packages(say: Callable[[str], None]) -> None:
    """See that they are there.

    Raises:
        StartError: as above.
    """
    from tidegate.cli.server_packages import ensure

    ensure(say, PACKAGES, "the packages that read inside TLS", CODINGS)
