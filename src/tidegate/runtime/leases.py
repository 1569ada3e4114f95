"""The hold `uid` with users that are leased: the one that has been free for longest, one live task each (HLD-3).

Two things say who has a uid. The lease in the store is what outlives everybody, and keeps the order; the claim
(holds/uid_claims.py) is a lock that ends with its holders. A lease whose uid nobody holds locked is what a killed run
left, and is given back here.
"""

from __future__ import annotations

from tidegate.holds import uid_claims, uid_range
from tidegate.holds.uid import none_free
from tidegate.holds.uid_table import FIRST, LAST
from tidegate.state.sqlite import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.holds.hold import Hold, LaunchSpec, RunningTask
    from tidegate.holds.inside import TaskSockets
    from tidegate.holds.uid_claims import Claim
    from tidegate.model.errors import StartError
    from tidegate.state.store import Store

MOST_TRIED = 512
"""Users that turn out not to be free before it is given up."""


class LeasedHold:
    """A hold that each launch gets a leased user for. `clock` gives Unix time in seconds."""

    def __init__(self, hold: Hold, state: str, clock: Callable[[], float]) -> None:
        self._hold = hold
        self._state = state
        self._clock = clock
        self.name = hold.name
        self.has_gate = hold.has_gate

    def probe(self) -> StartError | None:
        """See Hold."""
        return self._hold.probe()

    def sweep(self) -> None:
        """Give back what killed runs had: leases, and places in the table.

        Raises:
            StartError: where the hold cannot be had here.
        """
        self._hold.sweep()
        store = open_store(self._state)
        try:
            self._give_back(store)
        finally:
            store.close()

    def launch(self, spec: LaunchSpec, deliver: Callable[[TaskSockets], None] | None) -> RunningTask:
        """See Hold.launch.

        Raises:
            StartError: also where no user is free.
            NotSavedError: where the lease cannot be kept.
        """
        from tidegate.holds.uid import require

        require()  # before anything is leased
        store = open_store(self._state)
        try:
            self._give_back(store)
            claim = self._lease(store, spec.run_id)
        except BaseException:
            store.close()
            raise

        def give_back() -> None:
            try:
                store.release_uid(claim.uid, self._clock())
            finally:
                store.close()

        try:
            task = self._hold.launch(spec.replace(claim=claim), deliver)
        except BaseException:
            claim.release()
            give_back()
            raise
        task.after.append(give_back)
        return task

    def _lease(self, store: Store, task: str) -> Claim:
        taken: set[int] = set()
        while len(taken) < MOST_TRIED:
            uid = store.lease_uid(task, self._clock(), FIRST, LAST, taken)
            if uid is None:
                break
            claim = None if uid_range.known(uid) else uid_claims.claim(uid)
            if claim is not None:
                return claim
            taken.add(uid)
            store.release_uid(uid, self._clock())
        raise none_free()

    def _give_back(self, store: Store) -> None:
        for lease in store.uid_leases():
            if not uid_claims.is_held(lease.uid):
                store.release_uid(lease.uid, self._clock())
