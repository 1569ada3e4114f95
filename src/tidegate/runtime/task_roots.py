"""What a run verifies destinations against, and by which files its task is told whom to trust (INS-2; trust.py)."""

from __future__ import annotations

from tidegate.runtime.container_task import engine_of, trusted_in
from tidegate.runtime.inspection import only_registries, wants_inspection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.holds.hold import Hold
    from tidegate.policy.policy import Policy
    from tidegate.runtime.link import Link
    from tidegate.runtime.root_pool import RootPool
    from tidegate.runtime.task import Order
    from tidegate.runtime.trust import TrustFiles


def roots_for(order: Order, policy: Policy | None, link: Link) -> RootPool | None:
    """Return what destinations are verified against, None where nothing is read inside TLS.

    Raises:
        StartError: where there is nothing to verify them against, and something but registries is to be read.
    """
    if not (link.authority or order.secrets or (policy is not None and wants_inspection(policy))):
        return None
    from tidegate.runtime.trust import need_roots, roots_pool

    if policy is not None and only_registries(policy) and not (link.authority or order.secrets or order.keys):
        return roots_pool(order.environ)
    return need_roots(order.environ, secrets=bool(order.secrets))


def trust_files_for(pool: RootPool, order: Order, hold: Hold) -> TrustFiles:
    """Return the files by which the task is told whom to trust; in a container the roots are those of its image."""
    from tidegate.runtime.trust import TrustFiles, with_own_roots

    if order.container is None:
        return TrustFiles(with_own_roots(pool, order.environ))
    return TrustFiles(*trusted_in(engine_of(hold), order.container.image, order.environ, order.state))
