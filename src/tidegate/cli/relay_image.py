"""`tidegate relay-image`: the image of the relay that containers reach their gate through (HLD-4), built and shown."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from tidegate.holds.container.engine import ENGINES, Engine
from tidegate.holds.container.relay_image import CHANGES, default_image, make_tar
from tidegate.journal.summary import printable
from tidegate.model.errors import EXIT_CHECK_FAILED, StartError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENGINE = click.option(
    "--engine", "names", multiple=True, type=click.Choice(ENGINES), help="This engine only; otherwise every one here."
)


@click.group("relay-image")
def relay_image() -> None:
    """The image of the relay for `--hold docker` and `--hold podman`, made of this machine's own Python."""


@relay_image.command()
@_ENGINE
@click.option("--output", metavar="FILE", help="Write the tar file there, for `docker import` on another machine.")
def build(*, names: tuple[str, ...], output: str | None) -> None:
    """Build the image, and put it into the engines of this machine."""
    tar = make_tar()
    if output is not None:
        _write(output, tar)
        changes = " ".join(f"--change '{change}'" for change in CHANGES)
        click.echo(f"import it with: docker import {changes} {printable(output)} {default_image()}")
        if not names:
            return
    for engine in _engines(names):
        engine.import_image(default_image(), tar, CHANGES)
        click.echo(f"{engine.name}: {default_image()}")


@relay_image.command()
@_ENGINE
def show(*, names: tuple[str, ...]) -> int:
    """Show the image's name, and which engines have it. Exit status 1 where one has not."""
    missing = False
    for engine in _engines(names):
        here = engine.has_image(default_image())
        missing |= not here
        said = "here" if here else f"not here: tidegate relay-image build --engine {engine.name}"
        click.echo(f"{engine.name}: {default_image()} {said}")
    return EXIT_CHECK_FAILED if missing else 0


def _engines(names: Sequence[str]) -> list[Engine]:
    found = [Engine(name) for name in names or ENGINES if names or shutil.which(name)]
    if not found:
        raise StartError(
            "neither docker nor podman is installed",
            fix="apt install podman; or --output FILE for another machine",
            code="engine-missing",
        )
    return found


def _write(path: str, content: bytes) -> None:
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise StartError(f"{path} cannot be written: {error.strerror}", fix="name another --output") from None
