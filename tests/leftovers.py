"""The pytest plugin that lets one failure be one failure: what a failed test left open ends with it.

A test that fails in its middle leaves what it held: sockets, files, programs with pipes. Its traceback keeps them
alive until the next test of the process begins, to which pytest would count each as a warning, and so an error
(`filterwarnings = error`). So, once a failure is reported, its frames let go of what they hold, what nobody else
holds is closed without a word, and programs that were left running are killed and waited for: before the fixtures
are torn down, which may wait for just those to close, and once more after that.

A test that passes is held to close what it opens, as ever.
"""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import traceback
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """After the report of a failure, which has all it says as text, and after the fixtures' end: end what is left."""
    report = yield
    if report.failed and call.excinfo is not None and not item.config.getoption("usepdb"):
        item.stash[_FAILED] = True
    if item.stash.get(_FAILED, False):
        _end_leftovers(item if call.when == "teardown" else None, call.excinfo)
    return report


def _let_go(error: BaseException) -> None:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        traceback.clear_frames(one.__traceback__)  # those that still run, pytest's own, stay as they are
        for frame, _ in traceback.walk_tb(one.__traceback__):
            frame.f_locals  # noqa: B018 - before Python 3.13 a copy, which pytest has asked for: made anew, it is empty


def _end_leftovers(over: pytest.Item | None, failed: pytest.ExceptionInfo[BaseException] | None) -> None:
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if failed is not None:
                _let_go(failed.value)
            if over is not None:
                getattr(over, "funcargs", {}).clear()  # pytest lets go of them too late for us
            gc.collect()
            _kill_abandoned()
            gc.collect()
    finally:
        sys.unraisablehook = before


def _kill_abandoned() -> None:
    # subprocess keeps there those that nobody holds any more and that still run.
    for process in list(getattr(subprocess, "_active", None) or ()):
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
    subprocess._cleanup()  # type: ignore[attr-defined]
