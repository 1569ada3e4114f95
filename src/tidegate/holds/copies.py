"""Copies of the descriptors of who asks the watcher: pidfd_open(2), pidfd_getfd(2).

A handle of a thread stays open for its next call. That is safe without asking again whether it is still the same one:
a handle is of one thread for ever, the kernel gives its number to nobody else while it lives, and of one that has ended
nothing can be copied. So who has that number when a copy succeeds is who had it when the handle was opened. This does
not hold for a handle of a whole process, which a kernel before 6.9 has for its threads: those are opened each time.
"""

from __future__ import annotations

import errno
import os

from tidegate.holds import linux
from tidegate.holds.on_behalf import field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PIDFD_THREAD = os.O_EXCL  # linux/pidfd.h, Linux 6.9
MOST = 64  # handles kept; a task with more threads that connect in turn has them opened anew


class Copies:
    """`valid` raises where who asks does not wait any more: its number may be another's by then."""

    def __init__(self, valid: Callable[[int], None]) -> None:
        self._valid = valid
        self._handles: dict[int, int] = {}

    def take(self, identity: int, thread: int, descriptor: int) -> int:
        """A copy of this descriptor of the thread that asks.

        Raises:
            OSError: where there is none to be had.
        """
        descriptor &= 0xFFFFFFFF
        handle = self._handles.get(thread, -1)
        if handle >= 0:
            try:
                return linux.call("pidfd_getfd", handle, descriptor, 0)
            except OSError:
                os.close(self._handles.pop(thread))  # it has ended, or has no such descriptor
        try:
            handle, keep = linux.call("pidfd_open", thread, PIDFD_THREAD), True
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            handle, keep = linux.call("pidfd_open", field(thread, "Tgid")[0], 0), False
        try:
            self._valid(identity)
            taken = linux.call("pidfd_getfd", handle, descriptor, 0)
        except OSError:
            os.close(handle)
            raise
        if not keep:
            os.close(handle)
            return taken
        if len(self._handles) >= MOST:
            for old in self._handles.values():
                os.close(old)
            self._handles.clear()
        self._handles[thread] = handle
        return taken
