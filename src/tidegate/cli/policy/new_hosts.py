"""`tidegate policy new-hosts`: hosts that a change reaches and the policy does not name (JRN-7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tidegate.cli.policy.options import json_option, policy_of_file, warn
from tidegate.cli.policy.records import forged, opened, remarks
from tidegate.model.errors import EXIT_CHECK_FAILED
from tidegate.policy.new_hosts import New, NewHosts
from tidegate.policy.proposal import some
from tidegate.policy.written import note

if TYPE_CHECKING:
    from tidegate.cli.policy.records import Named

_SHOWN = 1000  # lines; --json has all that were kept


@click.command("new-hosts")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("--against", metavar="POLICY", required=True, help="The policy that names what is known.")
@click.option("--tried", is_flag=True, help="What was refused, or only looked up, counts too.")
@click.option("--harness", metavar="NAME|FILE", default="", help="The hosts of this agent are named as well.")
@json_option
def new_hosts(*, logs: tuple[str, ...], against: str, tried: bool, harness: str, as_json: bool) -> int:
    """Say which hosts a run reached that POLICY does not name.

    LOG is a task's network.jsonl, a file of `run --report`, or a task's id. An allow or ask rule names a host, on its
    port and in its phase; what passes by default is named by nobody. Only POLICY's own file counts, not your
    configuration.

    Exit status 0 when all is named, 1 when something is new, when a record lacks connections or the action log beside
    it does not verify, 2 for what cannot be read.
    """
    policy = policy_of_file(against, harness=harness)
    warn(policy)
    records = opened(logs)
    check = NewHosts(policy, tried=tried)
    for named in records:
        for contact in named.record.contacts():
            check.add(contact)
    rows = check.rows()
    lacking = sum(_lacking(named, tried=tried) for named in records)
    broken = forged(records)
    for line in (*(line for named in records for line in remarks(named)), broken):
        if line:
            click.echo(f"tidegate: note: {line}", err=True)
    if as_json:
        click.echo(json.dumps(_json(check, rows, records, lacking, broken=bool(broken))))
    else:
        for new in rows[:_SHOWN]:
            click.echo(line_of(new))
        click.echo(_summary(check, rows, lacking, tried=tried))
    return EXIT_CHECK_FAILED if rows or lacking or broken else 0


def line_of(new: New) -> str:
    """Return one new host as a person reads it; a text of the task's own never begins a line."""
    hows = ", ".join(f"{how} x{count}" for how, count in new.hows.items())
    first = f", first at {new.first}" if new.first else ""
    return note(f"new: {new.text}: {hows} in {new.phase.value}{first}: {new.why}")


def _lacking(named: Named, *, tried: bool) -> int:
    return named.record.lost + (named.record.folded if tried else 0)


def _summary(check: NewHosts, rows: list[New], lacking: int, *, tried: bool) -> str:
    did = "tried" if tried else "reached"
    parts = []
    if rows:
        more = f" ({len(rows) - _SHOWN} are not shown)" if len(rows) > _SHOWN else ""
        new = f"{len(rows)} new{more}, {check.more} connections to others" if check.more else f"{len(rows)} new{more}"
        parts.append(f"{new}, {check.named} named, in {some(check.connections, 'connection')}")
    elif check.connections:
        what = "the one place" if check.named == 1 else f"all {check.named} places"
        parts.append(
            f"{what} {did} in {some(check.connections, 'connection')} {'is' if check.named == 1 else 'are'} named"
        )
    else:
        parts.append(f"nothing was {did}, so nothing is new")
    if lacking:
        parts.append(f"{some(lacking, 'connection')} cannot be checked: not on record")
    return "; ".join(parts)


def _json(check: NewHosts, rows: list[New], records: list[Named], lacking: int, *, broken: bool) -> dict[str, object]:
    return {
        "ok": not rows and not lacking and not broken,
        "verified": not broken,
        "new": [new.as_json() for new in rows],
        "named": check.named,
        "connections": check.connections,
        "more": check.more,
        "lacking": lacking,
        "records": [
            {
                "name": named.text,
                "lines": named.record.lines,
                "empty": named.record.empty,
                "torn": named.record.torn,
                "lost": named.record.lost,
                "folded": named.record.folded,
            }
            for named in records
        ],
    }
