"""Runs whose file asks for no gate."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tidegate.cli.run import warn_before
from tidegate.cli.run_options import parse_run
from tidegate.cli.run_without_gate import as_without_gate
from tidegate.model.errors import StartError, WithoutGateError
from tidegate.runtime import administrator

if TYPE_CHECKING:
    from pathlib import Path

OPEN = WithoutGateError("f:1:2 says unrestricted_network of /x: no gate and no policy", "open")
OFFLINE = WithoutGateError("f:1:2 says --no-network: no gate and no policy", "offline")


@pytest.mark.parametrize("error", [OPEN, OFFLINE])
def test_the_hold_of_the_file_with_a_warning(error: WithoutGateError, capsys: pytest.CaptureFixture[str]) -> None:
    """POL-15: the same run in that hold, and it is said each time."""
    options = as_without_gate(parse_run(["--policy", "/f", "--quiet", "--", "true"]), error)
    assert (options.hold, options.capture, options.policy, options.quiet) == (error.hold, "off", "/f", True)
    assert f"warning: {error.what}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ["--deny", "a.test"], ["--allow", "a.test"], ["--ask-for", "a.test"], ["--profile", "closed"],
        ["--publish", "8080"], ["--registries", "read"], ["--harness", "claude"], ["--fail-on-refusal"], ["--ask"],
        ["--secret", "X"], ["--hold", "netns"], ["--wait"],
    ],
)  # fmt: skip
def test_nothing_beside_it_is_lost(argv: list[str]) -> None:
    """POL-15, HLD-7: an option that has no meaning there stops the start, and is named."""
    with pytest.raises(StartError) as caught:
        as_without_gate(parse_run(["--policy", "/f", *argv, "--", "true"]), OPEN)
    assert argv[0] in caught.value.what
    assert argv[0] in caught.value.fix


def test_a_file_where_tasks_write_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POL-15, POL-9: neither in the workspace nor in what is shared to write, by no link; beside it, it counts."""
    work, beside = tmp_path / "work", tmp_path / "workbench"
    work.mkdir()
    beside.mkdir()
    (beside / "link").symlink_to(work / "f")
    monkeypatch.chdir(work)
    for path in ("f", str(work / "f"), str(beside / "link")):
        with pytest.raises(StartError, match="the file lies where tasks write") as caught:
            as_without_gate(parse_run(["--policy", path, "--", "true"]), OPEN)
        assert caught.value.fix == "give --open-network in place of --policy"
    shared = parse_run(["--policy", str(beside / "f"), "--share", str(beside), "--", "true"])
    with pytest.raises(StartError, match="where tasks write"):
        as_without_gate(shared, OPEN)
    readonly = parse_run(["--policy", str(beside / "f"), "--share", f"{beside}:ro", "--", "true"])
    assert as_without_gate(readonly, OPEN).hold == "open"
    assert as_without_gate(parse_run(["--policy", "f", "--", "true"]), OFFLINE).hold == "offline"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the administrator's file is root's own")
def test_what_the_administrator_forbids_stays_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POL-15, POL-8: the lock `open` stops such a run as it stops --open-network; another lock does not."""
    file = tmp_path / "policy.yaml"
    monkeypatch.setattr(administrator, "FOLDER", str(tmp_path))
    monkeypatch.setattr(administrator, "FILE", str(file))
    options = as_without_gate(parse_run(["--policy", "/f", "--", "true"]), OPEN)
    file.write_text("locked: [audit]\n")
    warn_before(options)
    file.write_text("locked: [open]\n")
    with pytest.raises(StartError, match="--open-network"):
        warn_before(options)
