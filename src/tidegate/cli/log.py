"""`tidegate log verify`: whether the action log is what was written, and where it is not (JRN-2)."""

from __future__ import annotations

import json
import os

import click

from tidegate.journal.summary import printable
from tidegate.journal.verify import Verified, verify
from tidegate.model.errors import EXIT_CHECK_FAILED, TidegateError
from tidegate.runtime.state import key_folder, log_folder, state_folder


@click.group()
def log() -> None:
    """The action log: one chain of lines that joins all tasks."""


@log.command("verify")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def verify_log(*, as_json: bool) -> int:
    """Find any change, gap, swap, cut tail or forged line. Exit status 1 where there is one."""
    state = state_folder(os.environ)
    folder = log_folder(state)
    if not os.path.isdir(folder):
        raise TidegateError("there is no action log yet", fix="tidegate serve writes one")
    try:
        found = verify(folder, key_folder(state))
    except OSError as error:
        raise TidegateError(f"{error.filename!r} cannot be read: {error.strerror}") from None
    click.echo(_json(found) if as_json else _text(found))
    return 0 if found.ok else EXIT_CHECK_FAILED


def _json(found: Verified) -> str:
    findings = [{"file": one.file, "line": one.line, "what": one.what} for one in found.findings]
    answer = {"ok": found.ok, "lines": found.lines, "sealed_to": found.head, "unfinished": found.unfinished}
    return json.dumps(answer | {"findings": findings, "more": found.more})


def _text(found: Verified) -> str:
    lines = []
    for one in found.findings:
        where = f"{one.file}:{one.line}" if one.line else one.file
        lines.append(printable(f"{where}: {one.what}"))
    if found.more:
        lines.append(f"... and {found.more} more")
    tail = "; the last line is not whole yet" if found.unfinished else ""
    if found.ok:
        lines.append(f"{found.lines} lines, each sealed and in its place, to the sealed head (line {found.head}){tail}")
    else:
        count = len(found.findings) + found.more
        lines.append(f"{count} thing{'s' if count > 1 else ''} wrong in {found.lines} lines{tail}")
    return "\n".join(lines)
