"""`tidegate doctor`: what works here and what does not; with `--escape` whether a hold lets anything out."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tidegate.doctor.check import FAIL, Check
from tidegate.doctor.escapes.outcome import ESCAPED, OK, UNTESTABLE, results, strangers
from tidegate.doctor.holds import HOLDS, check_holds
from tidegate.holds.container.engine import ENGINES
from tidegate.model.errors import EXIT_CHECK_FAILED, StartError, UsageError
from tidegate.policy.positions import on_screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.doctor.escapes.outcome import Result

_LINE = 2000  # characters of one row: a path in it may be long


@click.command()
@click.option("--escape", is_flag=True, help="Try every known way out of a hold, from inside a real one.")
@click.option("--hold", type=click.Choice((*HOLDS, *ENGINES)), default="netns", help="The hold to try (netns).")
@click.option("--capture", type=click.Choice(("on", "off")), default="on", help="As with run, for netns (on).")
@click.option("--fix", is_flag=True, help="Mend what can be mended safely without asking you.")
@click.option("--repos", metavar="FILE", default="", help="Also say what the repositories of this Kraft file reach.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor(*, escape: bool, hold: str, capture: str, fix: bool, repos: str, as_json: bool) -> int:
    """Say whether tasks can be held here. Exit status 1 when they cannot, or when something gets out.

    `--escape` sends no packet off this machine and leaves nothing behind.
    """
    if escape:
        if fix or repos:
            raise UsageError(f"{'--fix' if fix else '--repos'} does not go with --escape", fix="leave it out")
        return _escape(hold, capture, as_json=as_json)
    if (hold, capture) != ("netns", "on"):
        raise UsageError("--hold and --capture go with --escape", fix="leave them out")
    checks = _checks(repos)
    if fix and _mended(checks):
        checks = _checks(repos)
    if as_json:
        click.echo(
            json.dumps([{name: getattr(check, name) for name in ("name", "state", "what", "fix")} for check in checks])
        )
    for check in checks if not as_json else ():
        tail = ": ".join(text for text in (check.what, check.fix) if text)
        click.echo(on_screen(f"{check.state:<5} {check.name}" + (f": {tail}" if tail else ""), _LINE))
    return EXIT_CHECK_FAILED if any(check.state == FAIL for check in checks) else 0


def _checks(repos: str) -> list[Check]:
    from tidegate.doctor.attempts import check_attempts
    from tidegate.doctor.engines import check_engines
    from tidegate.doctor.limits import check_limits
    from tidegate.doctor.owners import check_owners
    from tidegate.doctor.policies import check_egress, check_policies
    from tidegate.doctor.records import check_records
    from tidegate.doctor.relays import check_relays
    from tidegate.doctor.server import check_server
    from tidegate.doctor.sinks import check_sinks
    from tidegate.doctor.tools import check_tools
    from tidegate.doctor.upstream import check_upstream
    from tidegate.doctor.users import check_users

    environ = os.environ
    return [
        *check_holds(),
        *check_users(),
        *check_engines(environ),
        *check_limits(),
        *check_attempts(),
        *check_owners(),
        *check_records(environ),
        *check_server(environ),
        *check_sinks(environ),
        *check_relays(environ),
        *check_policies(environ),
        *(check_egress(repos) if repos else ()),
        *check_tools(environ),
        *check_upstream(environ),
    ]


def _mended(checks: list[Check]) -> bool:
    """Mend what mends itself, and say so; whether anything was mended."""
    mended = False
    for check in checks:
        if check.mend is None:
            continue
        try:
            check.mend()
        except OSError as error:
            click.echo(f"tidegate: {check.name}: not mended: {error.strerror}", err=True)
        else:
            click.echo(f"tidegate: {check.name}: mended ({check.fix})", err=True)
            mended = True
    return mended


def _escape(hold: str, capture: str, *, as_json: bool) -> int:
    from tidegate.doctor.escapes import rows as _rows  # noqa: F401 (fills the table)
    from tidegate.doctor.escapes.attempt import attempt
    from tidegate.doctor.escapes.table import CAPTURED, TABLE

    column = CAPTURED if hold in ENGINES or (hold == "netns" and capture == "on") else hold
    user = "root" if os.geteuid() == 0 else "ordinary"
    if hold in ENGINES:
        answer, judge = _in_container(hold, column, user)
    else:
        answer = attempt(column)
        judge = partial(results, [row for row in TABLE.values() if row.is_for(column, user)])
    if "error" in answer:
        raise StartError(answer["error"], fix=answer.get("fix", ""), code="escapes")
    found = judge(column, answer)
    unknown = strangers(answer)
    counts = {state: sum(one.state == state for one in found) for state in (OK, ESCAPED, UNTESTABLE)}
    if as_json:
        click.echo(json.dumps(_plain(hold if hold in ENGINES else column, user, found, unknown, counts)))
    else:
        _print(hold if hold in ENGINES else column, user, found, unknown, counts)
    return EXIT_CHECK_FAILED if counts[ESCAPED] or unknown else 0


def _in_container(engine: str, column: str, user: str) -> tuple[dict[str, Any], Callable[..., list[Result]]]:
    """Have the table tried in a container of this engine, whose image is gone afterwards; the answer and its judge."""
    from tidegate.doctor.escapes.attempt import attempt
    from tidegate.doctor.escapes.in_containers import SHARES, counting, image_tar, judged, tried
    from tidegate.holds.container.engine import Engine

    if user != "root":
        raise UsageError(
            f"--escape --hold {engine} is tried by root only", fix=f"sudo tidegate doctor --escape --hold {engine}"
        )
    rows = counting(tried(column, user))
    one, image = Engine(engine), f"localhost/tidegate-trial:{os.getpid()}"
    one.import_image(image, image_tar())
    try:
        answer = attempt(column, rows=rows, container={"engine": engine, "image": image, "shares": SHARES})
    finally:
        one.run("image", "rm", image)
    return answer, partial(judged, rows)


def _print(column: str, user: str, found: list[Result], unknown: list[str], counts: dict[str, int]) -> None:
    for one in found:
        click.echo(f"{one.state:<17} {one.name}: {one.seen}")
        if one.state == ESCAPED:
            click.echo(f"{'':<17} {one.proves}")
    for where in unknown:
        click.echo(f"{ESCAPED:<17} somebody came to {where}")
    where = "netns with capture" if column == "captured" else column
    click.echo(
        f"{len(found)} ways out tried in the hold {where}, as {'root' if user == 'root' else 'an ordinary user'}: "
        f"{counts[OK]} held, {counts[ESCAPED] + len(unknown)} escaped, {counts[UNTESTABLE]} not testable here"
    )


def _plain(column: str, user: str, found: list[Result], unknown: list[str], counts: dict[str, int]) -> dict[str, Any]:
    return {
        "hold": column,
        "user": user,
        "held": counts[OK],
        "escaped": counts[ESCAPED],
        "not_testable": counts[UNTESTABLE],
        "reached_without_a_word": unknown,
        "rows": [{name: getattr(one, name) for name in ("name", "theme", "proves", "state", "seen")} for one in found],
    }
