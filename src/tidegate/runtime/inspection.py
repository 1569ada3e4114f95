"""The inspector of one task, where its policy asks for one (INS-1).

It is made where the gate runs, because its authority's key never leaves that process; what others get of it are its
certificates. The heavy modules are imported when the first connection is read, not while the task starts.
"""

from __future__ import annotations

import os
import sys

from tidegate.model.destination import Destination
from tidegate.model.errors import StartError
from tidegate.model.host import canonical_host
from tidegate.model.rule import REGISTRY
from tidegate.policy.rows import rule_of
from tidegate.policy.scope import covers, is_exempt, scope_of, widened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidegate.inspect.roots import Signer
    from tidegate.model.decision import Decision
    from tidegate.model.host import Host
    from tidegate.model.limits import Limits
    from tidegate.model.reason import Reason
    from tidegate.model.seams import Guard, Inspector, Line, Secrets, Streams, Tls
    from tidegate.policy.policy import Policy
    from tidegate.policy.scope import Scope
    from tidegate.runtime.secret_store import Stored

PACKAGES = {"cryptography": "cryptography>=42", "h2": "h2>=4.4"}
"""What is imported, and what is installed for it; pyproject and the launcher's requirements have the same."""
CODINGS = ("brotli>=1.2", "backports.zstd>=1.1; python_version < '3.14'")
"""What comes along where it can: without them answers of a secret's hosts are not asked for in these codings."""


class Reading:
    """An inspector, and the certificates that its task is to trust, as PEM."""

    __slots__ = ("authority", "inspector")

    def __init__(self, inspector: Inspector, authority: tuple[str, ...]) -> None:
        self.inspector = inspector
        self.authority = authority


class LateInspector:
    """An inspector that is made when the first connection is read: until then no library for it is loaded."""

    __slots__ = ("_made", "_make", "_scope")

    def __init__(self, scope: Scope, make: Callable[[], Inspector]) -> None:
        self._scope = scope
        self._make = make
        self._made: Inspector | None = None

    def covers(self, host: Host) -> bool:
        """Whether it is for this host."""
        return covers(self._scope, host)

    @property
    def guard(self) -> Guard | None:
        """What looks at calls to model services, where the task has some."""
        return self._inspector.guard

    @property
    def _inspector(self) -> Inspector:
        if self._made is None:
            self._made = self._make()
        return self._made

    def upstream(self, destination: Destination, alpn: tuple[bytes, ...]) -> Tls:
        """Return the client's end of a new connection to a destination."""
        return self._inspector.upstream(destination, alpn)

    def client(self, destination: Destination, alpn: bytes) -> Tls:
        """Return the server's end of a connection of the task."""
        return self._inspector.client(destination, alpn)

    def offers(self, alpn: tuple[bytes, ...]) -> tuple[bytes, ...] | None:
        """Return which of a client's protocols are offered to the destination."""
        return self._inspector.offers(alpn)

    def streams(
        self,
        decision: Decision,
        limits: Limits,
        open_line: Callable[[str], Line],
        failure: tuple[Reason, str] | None,
        secrets: Secrets | None = None,
    ) -> Streams:
        """Return what reads the HTTP/2 of one connection."""
        return self._inspector.streams(decision, limits, open_line, failure, secrets)


def wants_inspection(policy: Policy) -> bool:
    """Whether some host of the policy is read inside TLS."""
    return bool(scope_of(policy))


def only_registries(policy: Policy) -> bool:
    """Whether all that it wants read are package registries, which no rule of a person's named for that.

    Where these cannot be read, they are refused, and the task is none the worse for it.
    """
    rules = (*policy.index.limited(), *map(rule_of, policy.bounds))
    return not policy.guarded and all(
        one[0] == REGISTRY for rule in rules for union in rule.limits.requests for one in union
    )


def missing() -> list[str]:
    """Return those of the packages that are not installed; nothing of them is loaded."""
    return [
        name
        for name in PACKAGES
        if name not in sys.modules and not any(os.path.isdir(f"{path}/{name}") for path in sys.path)
    ]


def without_packages(policy: Policy, why: str, install: str = "") -> StartError:
    """Return the error for a start that needs them: `why` is a clause about them, `install` what mends it."""
    install = install or f"{sys.executable} -m pip install {' '.join(map(repr, PACKAGES.values()))}"
    if only_registries(policy):
        return StartError(
            f"package registries are read-only, and {why}",
            fix=f"{install}, or --registries tunnel, which lets publishing pass",
            code="packages",
        )
    return StartError(
        f"the policy has hosts read, and {why}",
        fix=install,
        code="packages",
    )


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
    policy: Policy,
    task: str,
    roots: str,
    wall: Callable[[], float],
    hosts: Sequence[str] = (),
    key: Signer | None = None,
) -> Reading | None:
    """Make what reads for a task; None where its policy wants nothing read.

    `roots` are PEM, `hosts` those of secrets, `key` one that was made ahead.

    Raises:
        StartError: where the packages for it are not there.
    """
    scope = scope_of(policy)
    if hosts:
        scope = widened(scope, hosts)
    if not scope:
        return None
    absent = missing()
    if absent:
        why = f"the packages that read inside TLS are not installed ({', '.join(absent)})"
        raise without_packages(policy, why)
    from tidegate.inspect.roots import make_roots

    keep_no_core()
    made = make_roots(scope, task, wall(), key=key)

    def inspector() -> Inspector:
        from tidegate.inspect.authority import Authority
        from tidegate.inspect.terminate import Contexts

        authority = Authority(scope, task, wall, roots=made)
        contexts = Contexts(authority, roots, wall)
        if policy.guarded:
            from tidegate.inspect.model_watch import Guard

            contexts.guard = Guard(policy.guarded)
        return contexts

    return Reading(LateInspector(scope, inspector), made.pem)
