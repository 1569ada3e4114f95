"""`--policy FILE` and the files of other products."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.model.errors import StartError, UsageError, WithoutGateError
from tidegate.policy.positions import PolicyErrors
from tidegate.runtime import suffix_list
from tidegate.runtime.imported_policy import import_file, policy_layer, refuse

ROOT = Path(__file__).parents[3]
KRAFT = "repos: [{path: /code/one, sandbox: %s}]\n"


def written(folder: Path, text: str) -> str:
    """Write a file and return its path."""
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    return str(path)


def listed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Give this machine a list of public suffixes, whatever it has."""
    path = folder / "list"
    path.write_text("com\n// ===END ICANN DOMAINS===\nb.test\n", encoding="utf-8")
    monkeypatch.setattr(suffix_list, "PLACES", (str(path),))


def test_a_policy_of_ours_is_one(tmp_path: Path) -> None:
    """POL-15: no note; one with mistakes has our errors and nobody else's."""
    layer, notes = policy_layer(written(tmp_path, "network: {runtime: {allow: [a.test]}}"), "/")
    assert (len(layer.rows), notes) == (1, ())
    with pytest.raises(PolicyErrors, match="has no such key: 'runtme'"):
        policy_layer(written(tmp_path, "network: {runtme: {allow: [a.test]}}"), "/")


def test_what_is_neither_is_one_line(tmp_path: Path) -> None:
    """POL-15: how to name it; our own errors where the keys are like ours."""
    with pytest.raises(UsageError, match="is not recognised as a policy of another product") as caught:
        policy_layer(written(tmp_path, "repo: [{path: /x}]\n"), "/")
    assert "--dialect NAME" in caught.value.fix
    with pytest.raises(PolicyErrors, match="write 'default'"):
        policy_layer(written(tmp_path, "defalt: deny\n"), "/")


def test_another_products_file_is_read_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POL-15: a note says whose it is and how much of it was kept; its mistakes are those of that product."""
    listed(monkeypatch, tmp_path)
    layer, (note,) = policy_layer(written(tmp_path, '{"hosts": ["a.test", "*.b.test:1"]}'), "/")
    assert [row[0] for row in layer.rows] == ["a.test", "a.test"]
    assert "is GurtOS's: 1 entry kept exactly, 0 narrower, 1 dropped (tidegate policy import" in note
    with pytest.raises(PolicyErrors, match="a rule must name a site"):
        policy_layer(written(tmp_path, '{"hosts": ["*"]}'), "/")


def test_the_folder_chooses(tmp_path: Path) -> None:
    """POL-15: of several repositories that of the folder; where there is none, nothing."""
    two = "repos:\n" + "".join(
        f"  - {{path: /code/{name}, sandbox: {{network: {{runtime: {{allow: [{name}.test]}}}}}}}}\n"
        for name in ("one", "two")
    )
    path = written(tmp_path, two)
    assert [row[0] for row in policy_layer(path, "/code/two")[0].rows] == ["two.test"]
    with pytest.raises(UsageError, match="has 2 repositories"):
        policy_layer(path, "/code")


def test_options_that_a_file_asks_for_are_said(tmp_path: Path) -> None:
    """POL-15: how a sandbox is made is no part of a policy, and a run says so; without it there is nothing to say."""
    made = KRAFT % "{kind: podman, image: 'img:1', network: {runtime: {allow: [a.test]}}}"
    _, (_, note) = policy_layer(written(tmp_path, "relay_image: r\n" + made), "/")
    assert "also asks for --relay-image r --hold podman --image img:1; " in note
    _, notes = policy_layer(written(tmp_path, KRAFT % "{kind: kit, network: {runtime: {}}}"), "/")
    assert len(notes) == 1


def test_what_launches_nothing_there_launches_nothing_here(tmp_path: Path) -> None:
    """POL-15, HLD-16: a configuration error, and one that asks for no gate says which option has none."""
    with pytest.raises(StartError, match="repository /code/one: its sandbox has no network policy") as caught:
        policy_layer(written(tmp_path, KRAFT % "{kind: docker}"), "/")
    assert caught.value.exit_status == 78
    with pytest.raises(WithoutGateError) as open_one:
        policy_layer(written(tmp_path, KRAFT % "{unrestricted_network: true}"), "/code/one/below")
    assert (open_one.value.hold, open_one.value.exit_status) == ("open", 78)
    assert open_one.value.fix == "give --open-network in place of --policy"
    imported = import_file(b"relay_image: x\n", "f", folder="/")
    assert imported is not None
    with pytest.raises(StartError, match="it names no repository"):
        refuse(imported)


def test_a_policy_of_ours_loads_nothing_of_this(tmp_path: Path) -> None:
    """POL-15: neither the dialects nor the public suffix list are on the path of a run without them."""
    path = written(tmp_path, "network: {runtime: {allow: [a.test]}}")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from tidegate.runtime.imported_policy import policy_layer;"
        "policy_layer(sys.argv[2], '/'); print(*sys.modules)"
    )
    argv = [sys.executable, "-c", program, os.fspath(ROOT / "src"), path]
    loaded = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert "tidegate.policy.loader" in loaded
    assert not {"tidegate.policy.suffixes", "tomllib"} & set(loaded)
    assert not [name for name in loaded if name.startswith("tidegate.policy.dialects")]


def test_without_a_list_no_wildcard_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POL-15: a GurtOS file with a wildcard is refused with what to install; one without needs no list."""
    monkeypatch.setattr(suffix_list, "PLACES", (str(tmp_path / "none"),))
    path = written(tmp_path, '{"hosts": ["a.test"]}')
    assert len(policy_layer(path, "/")[0].rows) == 2
    path = written(tmp_path, '{"hosts": ["*.a.test"]}')
    with pytest.raises(StartError, match="a wildcard of such a file needs the list of public suffixes") as caught:
        policy_layer(path, "/")
    assert caught.value.fix == "apt install publicsuffix"
