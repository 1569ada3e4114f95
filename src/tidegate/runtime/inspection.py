"""The inspector of one task, where its policy asks for one (INS-1).

It is made where the gate runs, because its authority's key never leaves that process; what others get of it are its
certificates. The heavy modules are imported only here, and only then.
"""

from __future__ import annotations

from tidegate.model.destination import Destination
from tidegate.model.errors import StartError
from tidegate.model.host import canonical_host
from tidegate.policy.scope import is_exempt, scope_of, widened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidegate.inspect.terminate import Contexts
    from tidegate.policy.policy import Policy
    from tidegate.runtime.secret_store import Stored

PACKAGES = {"cryptography": "cryptography>=42", "h2": "h2>=4.4"}
"""What is imported, and what is installed for it; pyproject's extra `inspect` has the same, with CODINGS."""
CODINGS = ("brotli>=1.2", "backports.zstd>=1.1; python_version < '3.14'")
"""What comes along where it can: without them answers of a secret's hosts are not asked for in these codings."""


class Reading:
    """An inspector, and the certificates that its task is to trust, as PEM."""

    __slots__ = ("authority", "inspector")

    def __init__(self, inspector: Contexts, authority: tuple[str, ...]) -> None:
        self.inspector = inspector
        self.authority = authority


def wants_inspection(policy: Policy) -> bool:
    """Whether some host of the policy is read inside TLS."""
    return bool(scope_of(policy))


def need_readable(policy: Policy, secrets: Iterable[Stored]) -> None:
    """See that the hosts of secrets can be read: only there is a stand-in swapped (INS-5).

    Raises:
        StartError: where the policy says `inspect: never` of one.
    """
    for secret in secrets:
        for host, port in secret.hosts:
            if is_exempt(Destination(canonical_host(f"[{host}]" if ":" in host else host), port), policy):
                raise StartError(
                    f"the secret {secret.name} is for {host}:{port}, of which the policy says 'inspect: never'",
                    fix="take the host out of inspect.never, or leave the secret out",
                    code="secret-never-inspected",
                )


def keep_no_core() -> None:
    """Let no core of this process be written, and nobody without rights look into it: it has keys and secrets.

    The limit is 1: where cores go to a program, the kernel asks it for 0 too, and 1 alone is kept (core(5)). Other
    programs of this user can then read neither its memory nor its environment (PR_SET_DUMPABLE, prctl(2)).
    """
    import resource

    from tidegate.holds import linux

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))
    linux.prctl(linux.PR_SET_DUMPABLE, 0)


def make_reading(
    policy: Policy, task: str, roots: str, wall: Callable[[], float], hosts: Sequence[str] = ()
) -> Reading | None:
    """Make what reads for a task; None where its policy wants nothing read. `roots` are PEM, `hosts` those of secrets.

    Raises:
        StartError: where the packages for it are not there.
    """
    scope = scope_of(policy)
    if hosts:
        scope = widened(scope, hosts)
    if not scope:
        return None
    try:
        from tidegate.inspect.authority import Authority
        from tidegate.inspect.terminate import Contexts
    except ImportError as error:
        wanted = " ".join(repr(one) for one in PACKAGES.values())
        raise StartError(
            f"some hosts are to be read inside TLS, and the packages that read inside TLS are not installed ({error})",
            fix=f"pip install {wanted}",
            code="packages",
        ) from None
    keep_no_core()
    authority = Authority(scope, task, wall)
    contexts = Contexts(authority, roots, wall)
    if policy.guarded:
        from tidegate.inspect.model_watch import Guard

        contexts.guard = Guard(policy.guarded)
    return Reading(contexts, tuple(one.decode("ascii") for one in authority.certificates))
