"""`tidegate policy trust` and `untrust`: a person's word for exactly the bytes of a folder's tidegate.yaml (POL-9)."""

from __future__ import annotations

import hashlib
import os
import sys
import time

import click

from tidegate.model.errors import StartError, UsageError
from tidegate.policy.positions import on_screen
from tidegate.runtime.administrator import refuse_what_is_locked
from tidegate.runtime.folder_policy import FOLDER_FILE, FolderPolicy, folder_policy
from tidegate.runtime.state import state_folder
from tidegate.state.folders import folder_key
from tidegate.state.sqlite import open_store
from tidegate.state.store import Trust


@click.command()
@click.argument("folder", default=".")
@click.option("--yes", is_flag=True, help="Do not ask: you have looked at it.")
def trust(*, folder: str, yes: bool) -> int:
    """Trust the tidegate.yaml of FOLDER, exactly as it is now.

    FOLDER is this one when left out. Says what the file newly lets through, and asks. When it changes later, runs stop
    until it is trusted again.
    """
    refuse_what_is_locked("trust-folder", "trusting a folder's policy")
    found = folder_file(folder)
    click.echo("\n  ".join(found.more()))
    if found.trusted:
        click.echo(f"{on_screen(found.folder, 200)}: its {FOLDER_FILE} is trusted already")
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nobody is there to ask", fix="look at the file, then add --yes")
        if not click.confirm("trust exactly this?"):
            return 1
    digest = hashlib.sha256(found.data).hexdigest()
    store = open_store(state_folder(os.environ))
    try:
        store.trust(Trust(folder_key(found.folder), digest, found.data, time.time(), f"uid {os.getuid()}"))  # noqa: TID251  the clock comes in here
    finally:
        store.close()
    click.echo(f"{on_screen(found.folder, 200)}: its {FOLDER_FILE} is trusted (sha256 {digest[:16]}…)")
    return 0


@click.command()
@click.argument("folder", default=".")
def untrust(*, folder: str) -> int:
    """Trust the tidegate.yaml of FOLDER no longer.

    FOLDER is this one when left out. Exit status 1 when it was not trusted.
    """
    key = folder_key(folder)
    store = open_store(state_folder(os.environ))
    try:
        was = store.untrust(key)
    finally:
        store.close()
    click.echo(f"{on_screen(key.path, 200)}: nothing is trusted here {'any more' if was else 'anyway'}")
    return 0 if was else 1


def folder_file(folder: str) -> FolderPolicy:
    """Return what lies in a folder and what is trusted there.

    Raises:
        StartError, UsageError: when there is nothing, or it cannot be read or used.
    """
    real = folder_key(folder).path
    found = folder_policy(real, state_folder(os.environ))
    if found is None:
        raise StartError(f"{real!r} has no {FOLDER_FILE}", fix="name a folder that has one")
    return found
