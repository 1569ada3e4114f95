"""What a run verifies destinations against, and what its task is told to trust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import trustme

from tidegate.model.errors import StartError
from tidegate.policy.layers import command_line, join
from tidegate.runtime import trust
from tidegate.runtime.task import Order
from tidegate.runtime.task_roots import roots_for, trust_files_for

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.holds.hold import Hold
    from tidegate.runtime.link import Link


class Told:
    """A link that has nothing to say of authorities."""

    authority = ()


LINK = cast("Link", Told())


def order(environ: dict[str, str], **more: Any) -> Order:
    """Of `true`."""
    return Order(
        task="t", phase="runtime", command=("true",), folder="/", environ=environ, shares=(), hidden=(), readonly=(),
        selftest=True, log="", **more,
    )  # fmt: skip


def test_a_task_that_has_nothing_read_is_told_nothing() -> None:
    """INS-1: registries as tunnels, nothing else: no file of roots is read."""
    policy = join(command_line(allow=("a.test",), profile="closed"))
    assert roots_for(order({}), policy, LINK) is None
    assert roots_for(order({}), None, LINK) is None


def test_without_roots_registries_alone_do_not_stop_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """INS-7: they are refused; a secret needs roots (INS-5)."""
    monkeypatch.setattr(trust, "SYSTEM_BUNDLES", ("/nowhere",))
    policy = join(command_line())
    found = roots_for(order({}), policy, LINK)
    assert found is not None
    assert not found
    with pytest.raises(StartError, match="no roots to verify"):
        roots_for(order({}, secrets=cast("Any", ("x",))), policy, LINK)


def test_the_task_trusts_more_than_destinations_are_verified_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INS-2: what a file of the home names is for the task alone."""
    monkeypatch.setattr(trust, "SYSTEM_BUNDLES", (str(tmp_path / "system.pem"),))
    system, own = (trustme.CA().cert_pem.bytes().decode() for _ in range(2))
    (tmp_path / "system.pem").write_text(system)
    (tmp_path / "own.pem").write_text(own)
    (tmp_path / ".npmrc").write_text(f"cafile={tmp_path}/own.pem\n")
    one = order({"HOME": str(tmp_path)})
    pool = roots_for(one, join(command_line()), LINK)
    assert pool is not None
    assert pool.pem == system
    files = trust_files_for(pool, one, cast("Hold", None))
    assert files.roots.startswith(system + own)
