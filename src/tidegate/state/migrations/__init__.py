"""The schema as steps: step N makes version N of version N-1, in one transaction.

A step that has been published is never edited; what changes is a new step. VERSION is what this program reads.
"""

from __future__ import annotations

from tidegate.state.migrations.m0001 import STATEMENTS as _FIRST

STEPS: tuple[tuple[str, ...], ...] = (_FIRST,)
VERSION = len(STEPS)
