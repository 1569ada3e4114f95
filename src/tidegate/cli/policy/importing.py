"""`tidegate policy import FILE`: what another product's file becomes, entry by entry (POL-15).

The policy goes to standard output, so that it can be written to a file; what each entry became goes to standard error.
"""

from __future__ import annotations

import json
import os

import click

from tidegate.cli.policy.options import json_option
from tidegate.model.errors import StartError, UsageError
from tidegate.model.rule import Layer
from tidegate.policy.dialects.emit import policy_text
from tidegate.policy.dialects.imported import Imported
from tidegate.policy.dialects.reader import NAMES, layer_of, unknown
from tidegate.runtime.imported_policy import import_file, refuse
from tidegate.runtime.policy_sources import read_policy_file

_MOST = 1000  # entries that are printed for people; --json has all


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--dialect", metavar="NAME", default="", help=f"Whose file it is: {', '.join(NAMES)}.")
@click.option(
    "--select", metavar="NAME", default="", help="Which of several: a repository, service, profile or folder."
)
@click.option("--quiet", "-q", is_flag=True, help="The policy only.")
@json_option
def import_policy(*, file: str, dialect: str, select: str, quiet: bool, as_json: bool) -> int:
    """Print the policy that FILE of another product becomes.

    What each of its entries became, or why it was dropped, is said on standard error. Nothing is let through that the
    product would refuse. `--policy FILE` runs under the same.
    """
    if dialect and dialect not in NAMES:
        raise UsageError(f"there is no dialect {dialect!a}", fix=f"one of {', '.join(NAMES)}")
    data = read_policy_file(file)
    imported = import_file(data, file, folder=os.path.realpath("."), select=select, dialect=dialect)
    if imported is None:
        raise unknown(data, file)
    text = "" if imported.without_gate or imported.refusal[0] else policy_text(imported)[0]
    if text:
        layer_of(imported, Layer.COMMAND_LINE)  # what is printed can be loaded, or it is not printed
    if as_json:
        click.echo(json.dumps(_plain(imported, text), ensure_ascii=True))
    else:
        click.echo(text, nl=False)
        if not quiet and not _says_nothing_else(imported):
            _tell(imported)
    if imported.without_gate:
        option = "--open-network" if imported.without_gate == "open" else "--no-network"
        what = f"{imported.because}: no gate and no policy, so there is none to print"
        raise StartError(what, fix=f"give {option} when a task starts", code="without-gate")
    refuse(imported)
    return 0


def _says_nothing_else(imported: Imported) -> bool:
    """Whether all that it holds is what the one line of the error says: a command's flags."""
    return bool(imported.without_gate) and all(entry.where == "flags" for entry in imported.entries)


def _tell(imported: Imported) -> None:
    for entry in imported.entries[:_MOST]:
        click.echo(str(entry), err=True)
    for note in imported.notes:
        click.echo(f"note: {note}", err=True)
    more = len(imported.entries) - _MOST
    click.echo((f"{more} entries more; " if more > 0 else "") + imported.summary, err=True)


def _plain(imported: Imported, text: str) -> dict[str, object]:
    return {
        "dialect": imported.dialect,
        "policy": text or None,
        "without_gate": imported.without_gate or None,
        "refusal": ": ".join(imported.refusal) if imported.refusal[0] else None,
        "notes": list(imported.notes),
        "entries": [
            {
                "source": f"{entry.filename}:{entry.line}:{entry.column}",
                "where": entry.where,
                "text": entry.text,
                "kept": entry.how,
                "became": list(entry.became),
                "why": entry.why or None,
            }
            for entry in imported.entries
        ],
    }
