"""`tidegate rules` against a whole server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.server.api.running import Whole
from tidegate.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_remembered_hosts_are_listed_by_folder_and_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ASK-8: folder, host, when and by whom; forget takes one away; what is not there is exit 1."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Whole(tmp_path) as whole:
        assert main(["rules"]) == 0
        assert capsys.readouterr() == ("", "tidegate: no host is remembered: tidegate answer ID remember\n")
        task = whole.task()["id"]
        for host in ("b.test", "a.test"):
            whole.open_question(task, host)
            (number,) = [one["id"] for one in whole.get("/api/questions")["questions"] if one["host"] == host]
            assert main(["answer", str(number), "remember"]) == 0
        capsys.readouterr()
        assert main(["rules", "list"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == whole.folder
        assert [line.split()[1] for line in lines[1:]] == ["a.test:443", "b.test:443"]
        assert all(line.endswith("the command line") for line in lines[1:])
        assert main(["rules", "list", "--json", "--folder", whole.folder]) == 0
        ids = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
        assert main(["rules", "list", "--folder", str(tmp_path)]) == 0
        assert capsys.readouterr().err.startswith(f"tidegate: no host is remembered for {tmp_path}: ")
        assert main(["rules", "list", "--json", "--folder", str(tmp_path)]) == 0
        assert capsys.readouterr() == ("", "")
        assert main(["rules", "forget", str(ids[0])]) == 0
        assert [rule["host"] for rule in whole.get("/api/rules")["rules"]] == ["b.test"]
        assert main(["rules", "forget", str(ids[0])]) == 1
        assert main(["rules", "forget", "x"]) == 2
