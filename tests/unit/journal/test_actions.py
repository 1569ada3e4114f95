"""tidegate.journal.actions."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.product import REPOSITORY
from tests.unit.journal.actions_log import Written
from tests.unit.journal.not_files import put, word
from tidegate.journal.file_lock import FileLock
from tidegate.journal.heads import HEAD_NAME, KEY_NAME
from tidegate.journal.segments import LOCK_NAME, newest, older_segments, read
from tidegate.model.errors import StartError


def kinds(written: Written) -> list[str]:
    """Return the types of all lines."""
    return [line["type"] for line in read(str(written.folder))]


def test_lines_are_numbered_and_private(tmp_path: Path) -> None:
    """JRN-2: append returns the number, and the file is its owner's only."""
    written = Written(tmp_path)
    log = written.open()
    assert [log.append("task.created", "t1"), log.append("task.ended", "t1", durable=True)] == [1, 2]
    assert log.head.seq == 2
    log.close()
    assert written.live.stat().st_mode & 0o777 == 0o600
    assert written.folder.stat().st_mode & 0o777 == 0o700
    assert written.verify().ok


def test_the_chain_goes_on_after_a_restart(tmp_path: Path) -> None:
    """JRN-2: a second server goes on where the first stopped, and warns of nothing."""
    written = Written(tmp_path)
    written.write(3)
    written.write(2)
    found = written.verify()
    assert (found.ok, found.lines, found.head) == (True, 5, 5)
    assert written.warned == []


WRITER = """
import sys
sys.path.insert(0, sys.argv[3])
from tidegate.journal.actions import ActionLog
log = ActionLog(sys.argv[1], sys.argv[2], clock=lambda: 0.0, warn=print, max_bytes=20000, kept=1000)
for number in range(int(sys.argv[4])):
    assert log.append("net.blocked", "t", host=f"h{number}.test:443", durable=number % 9 == 0)
"""


def writer(written: Written, count: int) -> subprocess.Popen[str]:
    """Start another process that writes so many lines."""
    source = str(REPOSITORY / "src")
    argv = [sys.executable, "-I", "-c", WRITER, str(written.folder), str(written.keys), source, str(count)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def test_many_processes_write_one_chain(tmp_path: Path) -> None:
    """JRN-2: a server and runs beside it, over new files too: every line is there, in one chain."""
    written = Written(tmp_path)
    log = written.open(max_bytes=20000, kept=1000)
    children = [writer(written, 150) for _ in range(3)]
    for _ in range(150):
        assert log.append("question.opened", "t")
    assert [(child.communicate(timeout=60)[0], child.returncode) for child in children] == [("", 0)] * 3
    assert log.append("server.stopped") == 601
    log.close()
    found = written.verify()
    assert (found.ok, found.lines, found.head) == (True, 601, 601)
    assert len(older_segments(str(written.folder))) > 2
    assert written.warned == []


def test_what_another_left_torn_is_set_aside_while_this_one_lives(tmp_path: Path) -> None:
    """JRN-2, B70: a process that was killed in the middle of a line; whoever writes next goes on."""
    written = Written(tmp_path)
    log = written.open()
    log.append("a")
    with written.live.open("ab") as file:
        file.write(b'{"seq":2,"at"')
    assert log.append("b") == 3
    log.close()
    assert kinds(written) == ["a", "journal.torn", "b"]
    assert written.verify().ok


def test_who_is_kept_out_loses_the_line_and_says_so(tmp_path: Path) -> None:
    """JRN-5: a process that stopped with the lock in its hand holds nobody up for long; a durable line raises."""
    written = Written(tmp_path)
    log = written.open()
    log.append("a")
    held = FileLock(str(written.folder / LOCK_NAME))
    held.take(0)
    with pytest.raises(OSError, match="busy"):
        log.append("b", durable=True)
    assert (log.append("c"), log.append("d")) == (0, 0)
    with pytest.raises(StartError, match="cannot be used"):
        written.open()
    held.close()
    assert log.append("e") == 3
    log.close()
    assert kinds(written) == ["a", "journal.lost", "e"]
    assert next(line for line in read(str(written.folder)) if line["type"] == "journal.lost")["count"] == 2
    assert len(written.warned) == 1


def test_a_log_that_is_taken_away_is_begun_anew_and_stays_on_record(tmp_path: Path) -> None:
    """JRN-2: nothing is written where nobody can read it; the line that says what is missing comes first."""
    written = Written(tmp_path)
    log = written.open()
    log.append("a")
    written.live.unlink()
    assert log.append("b") == 3
    log.close()
    assert kinds(written) == ["journal.cut", "b"]
    assert not written.verify().ok


def test_threads_do_not_mix_lines(tmp_path: Path) -> None:
    """Gate and API write from threads of their own; every line is whole and in its place."""
    written = Written(tmp_path)
    log = written.open()
    threads = [threading.Thread(target=lambda: [log.append("net.blocked", "t") for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = written.verify()
    assert (found.ok, found.lines) == (True, 800)


def test_a_torn_last_line_is_set_aside_and_the_chain_goes_on(tmp_path: Path) -> None:
    """JRN-2: after a crash the half line is kept beside, the log says so, and the whole still verifies."""
    written = Written(tmp_path)
    written.write(3)
    with written.live.open("ab") as file:
        file.write(b'{"seq":4,"at":"2026')
    assert written.verify().unfinished
    written.write(1)
    assert (written.folder / "actions.torn").read_bytes() == b'{"seq":4,"at":"2026\n'
    assert kinds(written)[3:] == ["journal.torn", "net.blocked"]
    assert written.verify().ok
    assert len(written.warned) == 1


def test_a_line_without_its_head_is_taken_up(tmp_path: Path) -> None:
    """JRN-2: killed between line and head, the sealed line counts and nothing is wrong."""
    written = Written(tmp_path)
    written.write(3)
    head = (written.keys / HEAD_NAME).read_bytes()
    written.write(1)
    (written.keys / HEAD_NAME).write_bytes(head)
    assert written.verify().ok
    written.write(1)
    found = written.verify()
    assert (found.ok, found.lines, found.head) == (True, 5, 5)


def test_a_cut_tail_stays_on_record(tmp_path: Path) -> None:
    """JRN-2: a start over a cut log goes on, says so, and does not paper over the gap."""
    written = Written(tmp_path)
    written.write(5)
    written.live.write_bytes(b"".join(written.lines()[:3]))
    written.write(1)
    assert [line["seq"] for line in read(str(written.folder))] == [1, 2, 3, 6, 7]
    assert kinds(written)[3] == "journal.cut"
    assert [(one.line, one.what) for one in written.verify().findings] == [
        (4, "lines 4 to 5 are missing before this one (line 6)")
    ]
    assert "tidegate log verify" in written.warned[0]


def test_a_foreign_last_line_stays_on_record(tmp_path: Path) -> None:
    """JRN-2: a forged line is neither removed nor gone on with as if it were ours."""
    written = Written(tmp_path)
    written.write(2)
    with written.live.open("ab") as file:
        file.write(b'{"seq":3,"type":"question.answered"}\n')
    written.write(1)
    assert [one.line for one in written.verify().findings] == [3]
    assert "journal.broken" in kinds(written)


def test_a_lost_log_stays_on_record(tmp_path: Path) -> None:
    """JRN-2: a log whose file was removed begins with the line that says how far it had reached."""
    written = Written(tmp_path)
    written.write(3)
    written.live.unlink()
    assert not written.verify().ok
    written.write(1)
    first = next(read(str(written.folder)))
    assert (first["seq"], first["type"], first["upto"]) == (4, "journal.cut", 3)
    assert not written.verify().ok


def test_a_lost_key_is_not_replaced(tmp_path: Path) -> None:
    """HLD-7: an old log is never gone on with under a new key; without lines there is nothing to lose."""
    written = Written(tmp_path)
    written.write(1)
    (written.keys / KEY_NAME).unlink()
    with pytest.raises(StartError, match="move the log's folder aside"):
        written.open()
    written.folder.rename(tmp_path / "aside")
    written.write(1)
    assert written.verify().ok


@pytest.mark.parametrize("kind", ["symlink", "folder", "file for a folder"])
def test_a_log_that_cannot_be_opened_is_said(tmp_path: Path, kind: str) -> None:
    """HLD-7: one line, and nothing is written through a planted link."""
    written = Written(tmp_path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    if kind == "file for a folder":
        written.folder.write_bytes(b"")
    else:
        written.folder.mkdir()
        if kind == "folder":
            written.live.mkdir()
        else:
            written.live.symlink_to(victim)
    with pytest.raises(StartError, match="cannot be opened"):
        written.open()
    assert victim.read_bytes() == b""


def test_rotation_keeps_the_chain_and_a_bound(tmp_path: Path) -> None:
    """JRN-5: files are bounded in size and number; what was dropped is known to be dropped, not missing."""
    written = Written(tmp_path)
    written.write(200, max_bytes=2000, kept=3)
    assert len(older_segments(str(written.folder))) == 3
    found = written.verify()
    assert found.ok
    assert 0 < found.lines < 60
    written.write(5, max_bytes=2000, kept=3)
    assert written.verify().ok
    os.unlink(older_segments(str(written.folder))[0])
    first = next(read(str(written.folder)))["seq"]
    assert written.verify().findings[0].what.endswith(f"missing before this one (line {first})")


def test_a_crash_in_the_middle_of_a_rotation_loses_nothing(tmp_path: Path) -> None:
    """JRN-2: the file was renamed and the new one is not there yet."""
    written = Written(tmp_path)
    written.write(3)
    written.live.rename(written.folder / "actions.0000000001.jsonl")
    assert written.verify().ok
    written.write(2)
    assert [line["seq"] for line in read(str(written.folder))] == [1, 2, 3, 4, 5]
    assert written.verify().ok


def in_a_child(written: Written, program: str) -> None:
    """Run `program` with a `log` in a process of its own, since a limit on file sizes is the process's."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            exec(program, {"log": written.open(), "written": written, "resource": resource, "os": os})
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_full_disk_loses_lines_and_says_how_many(tmp_path: Path) -> None:
    """JRN-5: nothing is torn, the chain goes on with a count of what was lost, and a durable line raises instead."""
    written = Written(tmp_path)
    in_a_child(
        written,
        "assert log.append('a') == 1\n"
        "size = written.live.stat().st_size\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, hard))\n"
        "assert log.append('b') == 0 and log.append('b') == 0\n"
        "try:\n    log.append('c', durable=True)\nexcept OSError:\n    pass\nelse:\n    raise AssertionError\n"
        "assert written.live.stat().st_size == size\n"
        "assert len(written.warned) == 1\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "assert log.append('d', durable=True) == 3\n",
    )
    lines = list(read(str(written.folder)))
    assert [line["type"] for line in lines] == ["a", "journal.lost", "d"]
    assert lines[1]["count"] == 2
    assert written.verify().ok


@pytest.mark.slow
def test_killed_at_any_moment_the_chain_verifies(tmp_path: Path) -> None:
    """JRN-2, B70: kill -9 of a writer in full flow, again and again; every durable line that was reported is there."""
    written = Written(tmp_path)
    program = (
        "import sys\nsys.path.insert(0, sys.argv[3])\nfrom tidegate.journal.actions import ActionLog\n"
        "log = ActionLog(sys.argv[1], sys.argv[2], clock=lambda: 0.0, warn=print, max_bytes=20000, kept=1000)\n"
        "while True:\n    print(log.append('net.blocked', 't', host='a.test:443', durable=True), flush=True)\n"
    )
    source = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))) + "/src"
    told = 0
    for round_ in range(12):
        argv = [sys.executable, "-I", "-c", program, str(written.folder), str(written.keys), source]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            for _ in range(20 + 7 * round_):
                told = int(child.stdout.readline())
            child.kill()
            told = max([told, *map(int, child.stdout.read().splitlines(keepends=True)[:-1])])
        written.open(max_bytes=20000, kept=1000).close()
        found = written.verify()
        assert found.ok, found.findings
        assert next(newest(str(written.folder)))["seq"] >= told


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_is_not_written_to(tmp_path: Path, kind: str) -> None:
    """JRN-2: a server does not start on a log that nobody can read back, and says what stands there."""
    log = Written(tmp_path)
    log.write(2)
    put(kind, log.live)
    with pytest.raises(StartError) as raised:
        log.open()
    said = {"pipe": word("pipe"), "folder": "Is a directory", "device": "it is a symbolic link"}
    assert raised.value.what == f"the action log {str(log.live)!r} cannot be opened: {said[kind]}"


def test_an_older_file_that_is_a_pipe_holds_up_no_start(tmp_path: Path) -> None:
    """JRN-2: a server that has its newest lines starts; verify names the other."""
    log = Written(tmp_path)
    log.write(12, max_bytes=900)
    put("pipe", Path(older_segments(str(log.folder))[0]))
    log.write(1)
    assert log.found() == [(0, word("pipe"))]
