"""The numbers of system calls are the kernel's."""

from __future__ import annotations

import glob
import re

import pytest

from tidegate.holds.syscalls import OLD, TABLES

HEADERS = {
    "x86_64": "/usr/include/*/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_numbers_are_those_of_the_headers(machine: str) -> None:
    """Every number of a machine's table is the one in the kernel's headers, as far as these know the call (HLD-13)."""
    found = glob.glob(HEADERS[machine])
    if not found:
        pytest.skip("no kernel headers for this machine here")
    with open(found[0], encoding="ascii") as file:
        text = file.read()
    known = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    numbers = TABLES[machine][1]
    both = known.keys() & numbers.keys()
    assert {name: numbers[name] for name in both} == {name: known[name] for name in both}
    assert len(both) > 30


def test_both_machines_know_the_same_calls() -> None:
    """What is filtered on one machine is filtered on the other (HLD-13)."""
    names = [set(numbers) - set(OLD) for _architecture, numbers in TABLES.values()]
    assert names[0] == names[1]


@pytest.mark.parametrize("machine", sorted(TABLES))
def test_no_number_is_used_twice(machine: str) -> None:
    """A number typed twice would filter the wrong call."""
    numbers = list(TABLES[machine][1].values())
    assert len(set(numbers)) == len(numbers)
