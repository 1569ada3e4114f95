"""The SQLite file: who may have it, what it survives, and what is refused."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.lab.api import as_user
from tests.product import PATIENCE, PYTHON, Product
from tests.state.conformance import answer
from tidegate.model.errors import NotSavedError, StartError
from tidegate.model.question import Answer
from tidegate.state import database
from tidegate.state.database import MARK, open_database
from tidegate.state.folders import STORE_FILE as FILE
from tidegate.state.migrations import STEPS, VERSION
from tidegate.state.sqlite import open_store

if TYPE_CHECKING:
    from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def child(program: str, *arguments: str, wait: bool = True) -> subprocess.Popen[str]:
    """Run a program that has the sources and the tests on its path."""
    head = f"import sys; sys.path[:0] = [{ROOT!r}, {os.path.join(ROOT, 'src')!r}]\n"
    process = subprocess.Popen(
        [sys.executable, "-c", head + program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if wait:
        process.wait(60)
    return process


def test_everything_in_it_is_private(tmp_path: Path) -> None:
    """SRV-4: folder 0700, file and its companions 0600, whatever the umask."""
    before = os.umask(0)
    try:
        store = open_store(str(tmp_path / "state"))
        store.patch_settings({"wait_seconds": 60})
        modes = {
            name: stat.S_IMODE(os.lstat(tmp_path / "state" / name).st_mode) for name in os.listdir(tmp_path / "state")
        }
        store.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.lstat(tmp_path / "state").st_mode) == 0o700
    assert FILE in modes
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("what", ["folder open", "file open", "link", "folder is a file"])
def test_a_place_that_others_have_is_refused(tmp_path: Path, what: str) -> None:
    """Fails closed, with the command that helps."""
    folder = tmp_path / "state"
    open_store(str(folder)).close()
    if what == "folder open":
        folder.chmod(0o755)
    elif what == "file open":
        (folder / FILE).chmod(0o644)
    elif what == "link":
        (folder / FILE).rename(tmp_path / "elsewhere")
        (folder / FILE).symlink_to(tmp_path / "elsewhere")
    else:
        folder = folder / FILE
    with pytest.raises(StartError) as caught:
        open_store(str(folder))
    assert caught.value.fix


def test_a_newer_schema_is_refused_in_one_line(tmp_path: Path) -> None:
    """SRV-4: an older program does not touch it."""
    open_store(str(tmp_path / "state")).close()
    path = tmp_path / "state" / FILE
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(StartError, match="newer tidegate") as caught:
        open_store(str(tmp_path / "state"))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 78


OLDER = """
import sys
sys.path.insert(0, sys.argv[2])
import tidegate.state.database as database
database.VERSION, database.STEPS = database.VERSION - 1, database.STEPS[:-1]
store = database.open_database(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
store.close()
"""


def older(state: Path, user: Product | None = None) -> subprocess.Popen[str]:
    """A process of a tidegate whose schema is one step older, and that has the store open."""
    argv = [PYTHON, "-I", "-c", OLDER, str(state), os.path.join(ROOT, "src")]
    process = subprocess.Popen(
        as_user(argv, str(user.home)) if user is not None and user.user else argv,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def schema(state: Path) -> int:
    """The version of the schema."""
    connection = sqlite3.connect(state / FILE)
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def test_a_schema_is_not_brought_up_to_date_under_an_older_one(tmp_path: Path) -> None:
    """SRV-4, HLD-16: one line names who has it open; when that one has ended, the store goes on with all it has."""
    state = tmp_path / "state"
    with older(state) as process:
        for _ in range(2):
            with pytest.raises(StartError, match=rf"older tidegate \(schema {VERSION - 1}, {VERSION} here\)") as caught:
                open_store(str(state))
            assert f"process {process.pid} has it open: end that one first: kill {process.pid}" in str(caught.value)
            assert schema(state) == VERSION - 1
        process.communicate("", timeout=PATIENCE)
    with_all = open_store(str(state))
    assert schema(state) == VERSION
    open_store(str(state)).close()  # the neighbour: of the same schema, beside it
    with_all.close()


def test_a_killed_one_holds_nobody_up(tmp_path: Path) -> None:
    """SRV-4: the lock goes with the process that had it."""
    with older(tmp_path / "state") as process:
        process.kill()
        process.communicate(timeout=PATIENCE)
    open_store(str(tmp_path / "state")).close()
    assert schema(tmp_path / "state") == VERSION


@pytest.mark.parametrize("user", ["root", "user"] if os.geteuid() == 0 else ["user"])
def test_no_command_migrates_under_an_older_server(tmp_path: Path, user: str) -> None:
    """SRV-4: serve, run and policy trust all say so and change nothing; then they work."""
    product = Product(tmp_path, user=user == "user")
    assert product.run("--", "true").returncode == 0  # makes the state folder
    (product.folder / "tidegate.yaml").write_text("network: {runtime: {allow: [a.test]}}\n")
    with older(product.state, product) as process:
        for words in (("serve",), ("run", "--", "true"), ("policy", "trust", "--yes")):
            done = product.tidegate(*words)
            assert (done.returncode, done.stdout) == (78, ""), words
            assert done.stderr.startswith(f"tidegate: '{product.state / FILE}' is of an older tidegate"), done.stderr
            assert done.stderr.count("\n") == 1
        process.communicate("", timeout=PATIENCE)
    assert product.tidegate("policy", "trust", "--yes").returncode == 0
    assert product.run("--", "true").returncode == 0


@pytest.mark.parametrize("how", ["text", "cut", "other", "zeroes"])
def test_what_is_no_whole_database_is_refused(tmp_path: Path, how: str) -> None:
    """B145: a corrupt or half-written file is refused with a message, not ignored or made anew."""
    store = open_store(str(tmp_path / "state"))
    store.save_answer(answer(1, Answer.REMEMBER))
    store.close()
    path = tmp_path / "state" / FILE
    whole = path.read_bytes()
    if how == "text":
        path.write_bytes(b"this is no database, and it is longer than a header of one hundred bytes" * 3)
    elif how == "cut":
        path.write_bytes(whole[:5000])
    elif how == "zeroes":
        path.write_bytes(whole[:100] + bytes(len(whole) - 100))
    else:
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE mine (x)")
        connection.commit()
        connection.close()
        path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises((StartError, NotSavedError)) as caught:
        open_store(str(tmp_path / "state")).rules()
    assert caught.value.fix
    assert path.read_bytes() == before


def test_an_older_schema_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRV-4: the next step runs once, on what is there, and a step that fails leaves the file as it was."""
    store = open_store(str(tmp_path / "state"))
    store.save_answer(answer(1, Answer.REMEMBER))
    store.close()
    monkeypatch.setattr(database, "VERSION", VERSION + 1)
    monkeypatch.setattr(database, "STEPS", (*STEPS, ("CREATE TABLE extra (x)", "CREATE TABLE rules (y)")))
    with pytest.raises(StartError):
        open_store(str(tmp_path / "state"))
    monkeypatch.setattr(database, "STEPS", (*STEPS, ("CREATE TABLE extra (x)",)))
    for _ in range(2):
        store = open_store(str(tmp_path / "state"))
        assert len(store.rules()) == 1
        store.close()
    connection = sqlite3.connect(tmp_path / "state" / FILE)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    assert connection.execute("PRAGMA application_id").fetchone() == (MARK,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_many_processes_open_a_new_one_at_once(tmp_path: Path) -> None:
    """SRV-4: one makes it, all use it, and nothing that any of them wrote is lost."""
    program = """
from tests.lab.api import as_user
from tests.product import PYTHON, Product
from tests.state.conformance import answer
from tidegate.model.question import Answer
from tidegate.state.sqlite import open_store
store = open_store(sys.argv[1])
for number in range(10):
    store.save_answer(answer(int(sys.argv[2]) * 10 + number, Answer.REMEMBER, f"h{sys.argv[2]}-{number}.test"))
print("done")
"""
    children = [child(program, str(tmp_path / "state"), str(at), wait=False) for at in range(6)]
    results = [process.communicate(timeout=PATIENCE) for process in children]
    assert [out for out, _ in results] == ["done\n"] * 6, results
    store = open_store(str(tmp_path / "state"))
    assert len(store.rules()) == 60
    store.close()


def _whole(folder: str) -> int:
    # How many answers there are; every one has its rule and grant, and the file is sound.
    store = open_store(folder)
    answers = store.answers("t1")
    assert len(store.rules()) == len(store.grants("t1")) == len(answers)
    store.close()
    connection = sqlite3.connect(os.path.join(folder, FILE))
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return len(answers)


@pytest.mark.parametrize(
    "word", ["INSERT INTO answers", "INSERT OR REPLACE INTO grants", "INSERT INTO rules", "COMMIT"]
)
def test_kill_9_in_the_middle_of_a_transaction_leaves_it_whole(tmp_path: Path, word: str) -> None:
    """B145: a process that dies before any step of saving an answer has saved nothing of it."""
    program = """
import os, signal
from tests.lab.api import as_user
from tests.product import PYTHON, Product
from tests.state.conformance import answer
from tidegate.model.question import Answer
from tidegate.state.sqlite import open_store
store = open_store(sys.argv[1])
store.save_answer(answer(1, Answer.REMEMBER, "first.test"))
def trace(statement):
    if statement.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
store._database._connection.set_trace_callback(trace)
store.save_answer(answer(2, Answer.REMEMBER, "second.test"))
"""
    process = child(program, str(tmp_path / "state"), word)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    assert _whole(str(tmp_path / "state")) == 1


@pytest.mark.parametrize("after", [1, 7, 20])
def test_kill_9_at_any_time_loses_nothing_that_was_said_to_be_saved(tmp_path: Path, after: int) -> None:
    """B145: every answer that `save_answer` returned for is there after the kill."""
    program = """
from tests.lab.api import as_user
from tests.product import PYTHON, Product
from tests.state.conformance import answer
from tidegate.model.question import Answer
from tidegate.state.sqlite import open_store
store = open_store(sys.argv[1])
for number in range(1, 100000):
    store.save_answer(answer(number, Answer.REMEMBER, f"h{number}.test"))
    print(number, flush=True)
"""
    process = child(program, str(tmp_path / "state"), wait=False)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(after)]
    process.kill()
    rest = process.stdout.read()  # communicate() would leave out what a readline has read ahead
    process.communicate(timeout=PATIENCE)
    lines = [line for line in (*said, *rest.splitlines(keepends=True)) if line.endswith("\n")]
    count = _whole(str(tmp_path / "state"))
    assert int(lines[-1]) <= count <= int(lines[-1]) + 1


def test_a_full_disk_is_said_and_changes_nothing(tmp_path: Path) -> None:
    """JRN-5: an answer for which there is no room is not saved, and the store goes on once there is some."""
    store = open_store(str(tmp_path / "state"))
    connection = store._database._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        for number in range(1, 2000):
            store.save_answer(answer(number, Answer.REMEMBER, f"{'h' * 60}{number}.test"))

    with pytest.raises(NotSavedError, match="full") as caught:
        fill()
    assert "make room" in caught.value.fix
    connection.execute("PRAGMA max_page_count = 1000000")
    saved = len(store.answers("t1"))
    assert len(store.rules()) == saved
    store.save_answer(answer(5000, Answer.REMEMBER))
    store.close()
    assert _whole(str(tmp_path / "state")) == saved + 1


def test_a_file_that_may_not_grow_is_said(tmp_path: Path) -> None:
    """JRN-5: likewise where the operating system refuses the write (RLIMIT_FSIZE, as a quota does)."""
    program = """
import resource, signal
from tests.lab.api import as_user
from tests.product import PYTHON, Product
from tests.state.conformance import answer
from tidegate.model.errors import NotSavedError
from tidegate.model.question import Answer
from tidegate.state.sqlite import open_store
store = open_store(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    for number in range(1, 100000):
        store.save_answer(answer(number, Answer.REMEMBER, f"h{number}.test"))
except NotSavedError as error:
    print(number - 1, error)
"""
    process = child(program, str(tmp_path / "state"), str(200_000))
    out, errors = process.communicate()
    assert "make room on the disk" in out, errors
    assert _whole(str(tmp_path / "state")) == int(out.split()[0])
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 200_000


def test_a_writer_elsewhere_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes: a short wait is no error, and one without end becomes one."""
    monkeypatch.setattr(database, "PATIENCE", 0.3)
    store = open_store(str(tmp_path / "state"))
    other = sqlite3.connect(tmp_path / "state" / FILE, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    assert store.settings().wait_seconds == 900  # a reader waits for nobody
    with pytest.raises(NotSavedError, match="try again"):
        store.patch_settings({"wait_seconds": 60})
    timer = threading.Timer(0.05, lambda: other.execute("ROLLBACK"))
    timer.start()
    assert store.patch_settings({"wait_seconds": 70}).wait_seconds == 70
    timer.join()
    other.close()
    store.close()


def test_a_path_that_needs_quoting_is_that_path(tmp_path: Path) -> None:
    """A folder called `a?mode=ro#b` is a folder, not an option of the file's address."""
    folder = tmp_path / "a?mode=memory&x=%41#b"
    database = open_database(str(folder))
    database.close()
    assert sorted(os.listdir(folder)) == [FILE, f"{FILE}.lock"]
