"""Rights are given up for good."""

from __future__ import annotations

from tests.unit.holds.apart import apart


def test_all_sets_are_empty_afterwards() -> None:
    """Every capability set is empty, the securebits are locked, and nothing comes back by exec (HLD-13)."""
    code = """
    from tidegate.holds import capabilities
    inside(0)
    print(int(status('CapEff'), 16) != 0, int(status('CapBnd'), 16) != 0)
    capabilities.drop_all()
    print(*[int(status(name), 16) for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')])
    print(linux.prctl(27) == capabilities.SECUREBITS)
    print(attempt(linux.prctl, linux.PR_SET_SECUREBITS, 0))
    print(attempt(linux.prctl, linux.PR_CAPBSET_DROP, 0))
    sys.stdout.flush()
    os.execv('/bin/grep', ['grep', 'CapPrm', '/proc/self/status'])
    """
    assert apart(code).splitlines() == [
        "True True",
        "0 0 0 0 0",
        "True",
        "EPERM",
        "EPERM",
        "CapPrm:\t0000000000000000",
    ]


def test_without_the_right_to_drop_it_fails() -> None:
    """A process that may not empty its bounding set is not taken for one that did (HLD-7)."""
    code = """
    from tidegate.holds import capabilities
    inside(0)
    capabilities.drop_all()
    print(attempt(capabilities.drop_all))
    """
    assert apart(code) == "EPERM\n"


def test_no_new_privileges_and_not_dumpable() -> None:
    """no_new_privs is set; the process's memory and environment belong to nobody inside (HLD-13)."""
    code = """
    from tidegate.holds import capabilities
    print(status('NoNewPrivs'), linux.prctl(3))
    capabilities.no_new_privileges()
    capabilities.close_to_others()
    print(status('NoNewPrivs'), linux.prctl(3))
    """
    assert apart(code) == "0 1\n1 0\n"


def test_it_dies_with_its_parent() -> None:
    """A process that asked for it is killed when its parent ends (HLD-7)."""
    code = """
    from tidegate.holds import capabilities
    import select, time
    reading, writing = os.pipe()
    ready, readying = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            capabilities.die_with_parent()
            os.write(readying, b'x')
            time.sleep(60)
            os._exit(0)
        os.close(writing)
        os.read(ready, 1)
        os._exit(0)
    os.close(writing)
    print(select.select([reading], [], [], 30)[0] == [reading], os.read(reading, 5))
    """
    assert apart(code) == "True b''\n"


def test_some_capabilities_can_be_kept() -> None:
    """Exactly those of the mask stay effective and permitted, and none can be passed on (HLD-14)."""
    code = """
    from tidegate.holds import capabilities
    inside(0)
    capabilities.keep_only(1 << 18 | 1 << 40)
    print(*(f'{int(status(name), 16):x}' for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')))
    print(attempt(capabilities.keep_only, 1 << 19))
    """
    assert apart(code) == "0 10000040000 10000040000 0\nEPERM\n"
