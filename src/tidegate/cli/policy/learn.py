"""`tidegate policy learn TASK...`: what tasks did, as a policy or as a change to one, to be looked at (JRN-7)."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.policy.options import json_option, policy_of_file, warn
from tidegate.cli.policy.records import class_of, forged, judge, opened, remarks
from tidegate.cli.policy.written_file import put
from tidegate.model.address_class import Admission
from tidegate.model.destination import Destination
from tidegate.model.errors import UsageError
from tidegate.model.rule import Layer
from tidegate.model.verdict import Verdict
from tidegate.policy.amend import AmendError, Text
from tidegate.policy.decide import decide
from tidegate.policy.diff import diff
from tidegate.policy.layers import join
from tidegate.policy.learned import Learned
from tidegate.policy.loader import load_policy
from tidegate.policy.positions import PolicyErrors, on_screen
from tidegate.policy.proposal import Proposal, Wish, fresh, no_hosts, not_learned, propose, some
from tidegate.policy.unused import unused_entries
from tidegate.policy.written import note
from tidegate.runtime.policy_sources import read_policy_file
from tidegate.runtime.suffix_list import load_suffixes

if TYPE_CHECKING:
    from tidegate.policy.learned import Place
    from tidegate.policy.policy import Policy

_SOME = 8  # hosts that one line names
_WORDS = {Verdict.ALLOW: "let through", Verdict.ASK: "asked for", Verdict.DENY: "denied"}
_SHOWN = 40  # lines about what was not learned, on standard error


@click.command()
@click.argument("tasks", metavar="TASK...", nargs=-1, required=True)
@click.option("--against", metavar="POLICY", default="", help="Show what would change in this policy, as a diff.")
@click.option("--write", metavar="FILE", default="", help="Write the policy there.")
@click.option("--force", is_flag=True, help="With --write: over a file that is there.")
@click.option("--include-refused", is_flag=True, help="Allow what was only tried, too.")
@click.option("--group", is_flag=True, help="One wildcard for three or more names below one domain.")
@click.option("--presets", is_flag=True, help="A preset for the hosts of package registries.")
@click.option("--prune", is_flag=True, help="With --against: take out what was not used.")
@json_option
def learn(
    *,
    tasks: tuple[str, ...],
    against: str,
    write: str,
    force: bool,
    include_refused: bool,
    group: bool,
    presets: bool,
    prune: bool,
    as_json: bool,
) -> int:
    """Make a policy of what tasks did: best of what ran under `--profile audit`.

    TASK is a task's id, its network.jsonl, or a file of `run --report`. An entry names one host and one port that bytes
    moved to. What was only tried or refused is not allowed, and said. With --against the policy keeps its text, and
    entries that these tasks did not use are marked.
    """
    if prune and not against:
        raise UsageError("--prune takes entries out of a policy, and none is named", fix="add --against POLICY")
    if force and not write:
        raise UsageError("--force says nothing without --write", fix="add --write FILE")
    before = read_policy_file(against) if against else b""
    known = policy_of_file(against) if against else None
    if known is not None:
        warn(known)
    records = opened(tasks)
    learned = Learned(class_of())
    for named in records:
        for contact in named.record.contacts():
            learned.add(contact)
    proposal = propose(
        learned,
        Wish(include_refused=include_refused, presets=presets, group=group),
        judge=judge,
        domain=load_suffixes("--group").wildcard_domain if group else str,
        known=known,
    )
    notes = [line for named in records for line in remarks(named)]
    notes += [line for line in (forged(records),) if line]
    if learned.tools:
        notes.append(f"{learned.tools} connections to the tasks' tools (--tool): no policy names them")
    if learned.more:
        notes.append(f"{learned.more} connections went to more places than are kept: what they reached is not learned")
    unused: list[str] = []
    if known is not None:
        text, unused, said = _amended(before, against, known, learned, proposal, prune=prune)
        notes += said
    else:
        text = fresh(proposal, learned, of=[named.text for named in records])
    after = join(load_policy(text.encode(), write or "the learned policy", Layer.COMMAND_LINE))
    notes += _still_refused(after, proposal)
    for line in notes:
        click.echo(f"tidegate: note: {line}", err=True)
    if write:
        put(write, text.encode(), force=force)
    if as_json:
        click.echo(json.dumps(_json(proposal, learned, unused, notes, text)))
        return 0
    _say(proposal, learned, unused, known)
    if known is not None:
        click.echo("".join(_diff(before.decode(), text, against)), nl=False)
    elif not write:
        click.echo(text, nl=False)
    return 0


def _amended(
    data: bytes, path: str, known: Policy, learned: Learned, proposal: Proposal, *, prune: bool
) -> tuple[str, list[str], list[str]]:
    """Return the policy's text as it would be, what of it was not used, and what to say about that."""
    try:
        text = Text(data, path)
        entries = text.entries()
        places = unused_entries(known, text.layer, entries, learned.places())
        out, unmarked = text.amended(proposal.network(), places, prune=prune)
    except PolicyErrors:
        # It was read as a policy before, so it is one of another product (POL-15).
        raise UsageError(
            f"{path!r} is no policy of tidegate's own, and is not edited",
            fix=f"tidegate policy import {path} > policy.yaml, and name that",
        ) from None
    except AmendError as error:
        raise UsageError(
            f"{path!r} is not changed: {error.what}",
            fix="leave --against out for a policy of its own, and put the entries in by hand",
        ) from None
    unused = [entry.text for entry in entries if entry.at in places]
    notes = []
    open_to = [name for name, mode in (("private", known.private), ("own", known.own)) if mode is not Admission.NEVER]
    if open_to and any(item.rule[0] not in "*@" for entry in proposal.entries for item in entry.items):
        said = " and ".join(f"'{name}: never'" for name in open_to)
        notes.append(f"an entry with a host and a port may lead to addresses of the own network; {said} rules that out")
    if unmarked:
        shown = ", ".join(on_screen(one) for one in unmarked)
        notes.append(f"not used, and marked nowhere, for there is no place for a comment: {shown}")
    after = join(load_policy(out.encode(), path, Layer.COMMAND_LINE))
    less = diff(after, known)
    notes += [f"no longer as it was: {line}" for line in less.settings]
    for change in less.hosts:
        hosts = f"{', '.join(change.hosts[:_SOME])}{' ...' if change.hosts[_SOME:] else ''}"
        also = f" ({change.also})" if change.also else ""
        notes.append(f"no longer {_WORDS[change.after]} in {change.phase.value}: {hosts}{also}")
    return out, unused, notes


def _still_refused(after: Policy, proposal: Proposal) -> list[str]:
    """Return what the result does not let through although it was learned: never silent, whatever the reason."""
    said = []
    for entry in proposal.entries:
        for place in entry.places:
            decision = decide(after, Destination(place.host, place.port), place.phase)
            address = place.address if place.passed else place.wanted
            if decision.allowed and address:
                decision = judge(after, decision, address)
            if not decision.allowed:
                said.append(f"still refused under this policy: {decision.sentence()}")
    return said


def _say(proposal: Proposal, learned: Learned, unused: list[str], known: Policy | None) -> None:
    tried = sum(place.offered and not place.passed for place, _why in proposal.left)
    if tried:
        hint = "--include-refused allows them, and under --profile audit they are reached"
        click.echo(f"tidegate: note: {some(tried, 'place')} only tried: {hint}", err=True)
    review: dict[str, list[str]] = {}
    for entry in proposal.entries:
        if entry.review:
            review.setdefault(entry.review, []).extend(place.text for place in entry.places)
    for why, names in list(review.items())[:_SHOWN]:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        click.echo(f"tidegate: note: look at {note(names[0])}{others} before you allow it: {why}", err=True)
    if known is not None:
        for line in (*not_learned(proposal, _SHOWN), *no_hosts(learned, _SHOWN)):
            click.echo(f"tidegate: {note(line)}", err=True)
        if not proposal.entries and not unused:
            click.echo(
                "tidegate: note: the policy names all that these tasks reached, and they used all of it", err=True
            )


def _diff(before: str, after: str, path: str) -> list[str]:
    shown = on_screen(path, 200)
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), shown, f"{shown} (learned)"
    )
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]


def _json(proposal: Proposal, learned: Learned, unused: list[str], notes: list[str], text: str) -> dict[str, Any]:
    return {
        "connections": learned.contacts,
        "entries": [
            {
                "phase": entry.phase.value,
                "rules": [
                    {"rule": item.rule, "methods": item.methods, "paths": item.paths, "git": item.git or None}
                    for item in entry.items
                ],
                "review": entry.review or None,
                "places": [_place(place) for place in entry.places],
            }
            for entry in proposal.entries
        ],
        "not_learned": [_place(place) | {"why": why} for place, why in proposal.left],
        "no_hosts": learned.odd,
        "unused": unused,
        "notes": notes,
        "policy": text,
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "host": place.host.text,
        "port": place.port,
        "phase": place.phase.value,
        "passed": place.passed,
        "refused": place.refused,
        "how": sorted(how.value for how in place.hows),
        "methods": sorted(place.methods),
        "address": place.address or place.wanted or None,
        "first": place.first or None,
        "last": place.last or None,
    }
