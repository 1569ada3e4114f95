"""Users of the hold `uid`, leased for a launch and given back, however that ends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.holds.uid_apart import NEEDS_ROOT
from tidegate.holds.hold import LaunchSpec, RunningTask
from tidegate.model.errors import StartError
from tidegate.runtime.leases import LeasedHold
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from pathlib import Path

SPEC = LaunchSpec(argv=("true",), env={}, cwd="/", run_id="t1")


class Hold:
    """A hold that notes which claims it got; its tasks are children that have ended."""

    name = "uid"
    has_gate = True

    def __init__(self, error: StartError | None = None) -> None:
        self.uids: list[int] = []
        self.error = error

    def probe(self) -> None: ...
    def sweep(self) -> None: ...

    def launch(self, spec: LaunchSpec, _deliver: Any) -> RunningTask:
        self.uids.append(spec.claim.uid)
        if self.error is not None:
            raise self.error
        child = os.fork()
        if child == 0:
            os._exit(0)
        task = RunningTask(child, os.open("/dev/null", os.O_RDONLY), None)
        task.after.append(spec.claim.release)
        return task


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table and no lock of this machine is touched."""
    (tmp_path / "claims").mkdir(mode=0o700)
    monkeypatch.setattr("tidegate.holds.uid_claims.FOLDER", str(tmp_path / "claims"))
    monkeypatch.setattr("tidegate.holds.uid.require", lambda: None)
    monkeypatch.setattr("tidegate.holds.uid_claims.uid_fence.forget", lambda _elements: None)
    monkeypatch.setattr("tidegate.holds.uid_claims.uid_fence.own_ports", lambda _uid: [])


@NEEDS_ROOT
def test_living_tasks_have_a_uid_each_and_the_rested_one_comes_last(tmp_path: Path) -> None:
    """One live task each; one that ended gives its uid back as the last to be used again (HLD-3)."""
    hold = Hold()
    leased = LeasedHold(hold, str(tmp_path / "state"), lambda: 1.0)
    first, second = leased.launch(SPEC, None), leased.launch(SPEC, None)
    first.wait()
    third = leased.launch(SPEC, None)
    assert len(set(hold.uids)) == 3
    second.wait()
    third.wait()
    store = open_store(str(tmp_path / "state"))
    assert store.uid_leases() == ()
    store.close()


@NEEDS_ROOT
def test_a_failed_launch_gives_its_uid_back(tmp_path: Path) -> None:
    """Lease and lock (HLD-3, HLD-7)."""
    hold = Hold(StartError("no", fix="never"))
    leased = LeasedHold(hold, str(tmp_path / "state"), lambda: 1.0)
    for _ in range(2):
        with pytest.raises(StartError, match="no"):
            leased.launch(SPEC, None)
    assert len(set(hold.uids)) == 2
    store = open_store(str(tmp_path / "state"))
    assert store.uid_leases() == ()
    store.close()


@NEEDS_ROOT
def test_a_lease_of_a_killed_run_is_given_back(tmp_path: Path) -> None:
    """HLD-8: nobody holds its lock any more; a living one's stays."""
    state = str(tmp_path / "state")
    leased = LeasedHold(Hold(), state, lambda: 2.0)
    living = leased.launch(SPEC, None)
    store = open_store(state)
    dead = store.lease_uid("killed", 1.0, 30000, 39999)
    leased.sweep()
    assert dead not in [lease.uid for lease in store.uid_leases()]
    assert len(store.uid_leases()) == 1
    store.close()
    living.wait()
