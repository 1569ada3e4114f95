"""The last step before the command: from here on this process, and all it starts, has no right that a task lacks."""

from __future__ import annotations

from tidegate.holds import capabilities, landlock, seccomp


def enter(kind: str, user: int = 0) -> int | None:
    """Give up everything, for good. What the watcher answers is the descriptor that is returned (None in `open`).

    With a `user` become that one, who writes files that are another's outside (uid_filter.py).

    Raises:
        OSError: when the kernel refuses a step; the process must end then.
    """
    capabilities.drop_all(user)
    capabilities.die_with_parent()  # after a change of user, which takes it back
    capabilities.no_new_privileges()
    if user:
        from tidegate.holds import uid_filter

        seccomp.install(uid_filter.program())
    if kind == seccomp.OPEN:
        landlock.close_abstract_sockets()
    listener = seccomp.install(seccomp.program(kind), listener=kind != seccomp.OPEN)
    capabilities.close_to_others()
    return listener if kind != seccomp.OPEN else None
