"""The last step before the command."""

from __future__ import annotations

import pytest

from tests.unit.holds.apart import apart


@pytest.mark.parametrize("kind", ["netns", "offline", "open"])
def test_nothing_is_left_after_it(kind: str) -> None:
    """No capability, no_new_privs, a filter, not dumpable: all of it, in every hold (HLD-13)."""
    code = """
    from tidegate.holds import confine
    inside(0)
    listener = confine.enter(sys.argv[1])
    print(listener is None or os.readlink(f'/proc/self/fd/{listener}'))
    sets = [int(status(name), 16) for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')]
    print(sets, status('NoNewPrivs'), status('Seccomp'), linux.prctl(3))
    """
    listener, left = apart(code, kind).splitlines()
    assert listener == ("True" if kind == "open" else "anon_inode:seccomp notify")
    assert left == "[0, 0, 0, 0, 0] 1 2 0"


def test_a_step_that_fails_is_an_error() -> None:
    """Where the kernel refuses a step, nothing is taken for done (HLD-7)."""
    code = """
    from tidegate.holds import capabilities, confine
    inside(0)
    capabilities.drop_all()
    print(attempt(confine.enter, 'netns'))
    """
    assert apart(code) == "EPERM\n"
