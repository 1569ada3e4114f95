"""The schema as steps: step N makes version N of version N-1, in one transaction.

A step that has been published is never edited; what changes is a new step. VERSION is what this program reads.
"""

from __future__ import annotations

from tidegate.state.migrations import m0001, m0002, m0003, m0004, m0005

STEPS: tuple[tuple[str, ...], ...] = (
    m0001.STATEMENTS,
    m0002.STATEMENTS,
    m0003.STATEMENTS,
    m0004.STATEMENTS,
    m0005.STATEMENTS,
)
VERSION = len(STEPS)
