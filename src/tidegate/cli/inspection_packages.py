"""The packages that read inside TLS, which a first set-up does not install: seen to before a task that needs them."""

from __future__ import annotations

from tidegate.runtime.inspection import CODINGS, PACKAGES, wants_inspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.policy.policy import Policy


def ensure_for(policy: Policy, say: Callable[[str], None], *, secrets: bool = False) -> None:
    """See that they are there, where the policy or a secret wants something read.

    Raises:
        StartError: when they are not there and cannot be installed.
    """
    if secrets or wants_inspection(policy):
        ensure_packages(say)


def ensure_packages(say: Callable[[str], None]) -> None:
    """See that they are there.

    Raises:
        StartError: as above.
    """
    from tidegate.cli.server_packages import ensure

    ensure(say, PACKAGES, "the packages that read inside TLS", CODINGS)
