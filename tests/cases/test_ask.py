"""`run --ask` and `exec --ask` in a real terminal window: what a person sees, presses, and gets (ASK-4, ASK-5)."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.person import READY, Person
from tests.product import PYTHON, Product
from tests.served import Served, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab, Origin

USERS = ["root", "user"] if os.geteuid() == 0 else ["user"]
ASK = ("run", "--ask", "--quiet", "--profile", "closed", "--ask-for")
STATUS = 'curl -sS -o /dev/null -w "status %{http_code}\\n" http://a.test/'
BODY = "curl -sS http://a.test/"


@pytest.fixture(params=USERS)
def product(request: pytest.FixtureRequest, tmp_path: Path) -> Product:
    """The product, as root and as an ordinary user."""
    return Product(tmp_path, user=request.param == "user")


@pytest.fixture
def origin(lab: Lab) -> Origin:
    """What the tasks want to reach."""
    lab.dns.set("a.test", A=["1.2.3.4"])
    lab.dns.set("b.test", A=["1.2.3.4"])
    return lab.origin("http", "1.2.3.4", 80)


def asking(product: Product, line: str, rule: str = "a.test", **options: int) -> Person:
    """Run a shell line with --ask."""
    return Person.at(product, *ASK, rule, "--", "sh", "-c", line, **options)


def test_a_curl_waits_until_a_key_lets_it_through(product: Product, origin: Origin) -> None:
    """ASK-1, ASK-5: all of the question is on the screen; nothing goes out before the key; then curl succeeds."""
    with asking(product, f"echo before; {STATUS}; echo after") as person:
        shown = person.sees("tidegate asks: may this task connect?", READY)
        lines = [line.strip() for line in shown.splitlines()]
        assert "a.test:80" in lines
        assert f"folder     {product.folder}"[:76] in shown
        assert "rule a.test (command-line" in shown
        assert "waiting    1 connection" in lines
        assert re.search(r"time left +1[0-5]:\d\d, then it is refused", shown)
        for answer in (
            "a  allow now",
            "t  allow for this task",
            "d  deny",
            "x  deny for this task, and cut what is open",
        ):
            assert answer in lines
        assert "before\n" not in shown
        assert origin.connections == 0
        person.press("a")
        shown = person.sees("status 200", "after")
        assert "tidegate asks" not in shown
        assert person.end() == 0


def test_a_denied_curl_is_told_why(product: Product, origin: Origin) -> None:
    """ASK-2: curl gets the sentence that a person refused, and the host sees nothing."""
    with asking(product, f"{BODY}; echo; echo status $?") as person:
        person.press("d")
        person.sees("a person refused it; go on without it", "status 0")
        assert person.end() == 0
    assert origin.connections == 0


def test_an_answer_for_the_task_is_asked_once_and_one_for_now_again(product: Product, origin: Origin) -> None:
    """ASK-2: `t` lets the next connection pass too; after `a` the next one asks again."""
    with asking(product, f"{STATUS}; {STATUS}") as person:
        person.press("t")
        person.sees("status 200\nstatus 200")
        assert person.end() == 0
    assert origin.connections == 2
    with asking(product, f"{STATUS}; {STATUS}") as person:
        person.press("a")
        until(lambda: person.look() and b"status 200" in person.raw, "the first curl was not let through")
        person.press("d")
        person.sees("status 403")
        assert person.end() == 0


def test_what_is_remembered_passes_in_the_next_run(product: Product, origin: Origin) -> None:
    """ASK-2, ASK-8: `r` is on the disk before curl goes on; the folder's next run asks no one, one elsewhere does."""
    line = ["--quiet", "--profile", "closed", "--ask-for", "*.test", "--", "sh", "-c", STATUS]
    with asking(product, STATUS, "*.test") as person:
        person.press("r")
        person.sees("status 200")
        assert person.end() == 0
    assert product.run(*line).stdout == "status 200\n"
    elsewhere = product.folder / "below"
    elsewhere.mkdir()
    elsewhere.chmod(0o755)
    assert product.run(*line, cwd=elsewhere).stdout == "status 403\n"
    assert origin.connections == 2


def test_what_cannot_be_remembered_says_so_and_has_no_key(product: Product, origin: Origin) -> None:
    """ASK-8, B146: a rule that asks for exactly this host and port would win; `r` does nothing."""
    with asking(product, STATUS, "a.test:80") as person:
        shown = person.sees(READY)
        assert "not remembered" in shown
        assert "\n r  " not in shown
        person.press("r")
        person.look(0.5)
        person.sees(READY)
        assert origin.connections == 0
        person.press("d")
        assert person.end() == 0


FLOOD = """
import os, subprocess, sys, threading, time
curl = subprocess.Popen(["sh", "-c", sys.argv[1]], stdout=subprocess.PIPE)
end = time.monotonic() + 60
while curl.poll() is None and time.monotonic() < end:
    try:
        os.write(1, b"\\x1b[2J\\x1b[Hfake: allowed \\x1b[31;40mx" * 50 + b"\\x1b]2;never ended \\x1b[?1049l\\x1b(0")
    except BlockingIOError:
        pass
os.write(1, b"\\x1b\\\\\\x1b(B\\x1b[0m\\x1b[2J\\x1b[H")
print("curl said", curl.stdout.read().decode().strip(), flush=True)
time.sleep(0.3)
"""


def test_a_task_that_floods_the_terminal_cannot_paint_over_the_question(product: Product, origin: Origin) -> None:
    """ASK-5, B98: nothing of the task's comes through while the screen is up; it goes on after."""
    with Person.at(product, *ASK, "a.test", "--", PYTHON, "-I", "-c", FLOOD, STATUS) as person:
        shown = person.sees("a.test:80", READY)
        begun = len(person.raw)
        later = person.look(1.5)
        assert "fake" not in shown + later
        assert b"fake" not in person.raw[begun:]
        assert [line for line in shown.splitlines() if "time left" not in line] == [
            line for line in later.splitlines() if "time left" not in line
        ]
        assert origin.connections == 0
        person.press("a")
        person.sees("curl said status 200")
        assert person.end() == 0


def test_a_window_of_another_size_is_drawn_anew(product: Product, origin: Origin) -> None:
    """HLD-9, ASK-5: the page fits the new window, and the task has its size after; too small, only refusing is left."""
    with asking(product, f"{STATUS}; stty size") as person:
        person.sees(READY)
        person.screen.resize(30, 100)
        person.resize(30, 100)
        title = [" tidegate asks: may this task connect?"]
        person.sees_that(lambda text: text.splitlines()[:1] == title and text.count("a.test:80") == 1, "one page")
        person.screen.resize(4, 60)
        person.resize(4, 60)
        assert "a.test" not in person.sees("This window is too small")
        person.look(0.8)
        person.type("a")
        assert "too small" in person.look(0.5)
        assert origin.connections == 0
        person.screen.resize(30, 100)
        person.resize(30, 100)
        person.press("a")
        person.sees("status 200", "30 100")
        assert person.end() == 0


def test_keys_typed_before_the_question_do_not_answer_it(product: Product, origin: Origin) -> None:
    """ASK-5: what was typed ahead, a key held down and pasted text allow nothing.

    What comes in the first moment neither: tests/unit/runtime/test_ask_screen.py, which has the clock in its hand.
    """
    with asking(product, f"echo go; until [ -e typed ]; do sleep 0.05; done; {STATUS}") as person:
        person.sees("go")
        for _ in range(4):
            person.type("a")
            person.look(0.1)
        (product.folder / "typed").touch()
        person.sees("tidegate asks", READY)
        for _ in range(20):
            person.type("aa")  # together: on a busy machine single ones come as far apart as a person's
            person.look(0.02)
        person.look(0.3)
        person.type("tar")
        person.look(0.5)
        person.sees(READY)
        assert origin.connections == 0
        person.press("d")
        person.sees("status 403")
        assert person.end() == 0


@pytest.mark.parametrize(
    "parts",
    [
        ("\x1b]la\x1b\\",),
        ("\x1b]l", "a", "\x1b\\"),
        ("\x1bP", "t", "\x1b\\"),
        ("\x1b[1;", "a"),
        ("\x1b[M", "a", "a", "a"),
    ],
    ids=["title", "title in pieces", "string", "control", "mouse"],
)
def test_what_a_terminal_answers_by_itself_is_no_key(product: Product, origin: Origin, parts: tuple[str, ...]) -> None:
    """ASK-5: a task can make a terminal say letters (its title, a report); none of them answers, however slow."""
    with asking(product, STATUS) as person:
        person.sees(READY)
        for part in parts:
            person.look(0.25)
            person.type(part)
        person.look(0.6)
        person.sees(READY)
        assert origin.connections == 0
        person.press("d")
        person.sees("status 403")
        assert person.end() == 0


def test_questions_queue(product: Product, origin: Origin) -> None:
    """ASK-1, ASK-5: one after the other, counted; a key answers the one that is shown, and no key answers two."""
    later = STATUS.replace("a.test", "b.test")
    line = f"{STATUS} & until [ -e asked ]; do sleep 0.05; done; {later} & wait"
    with asking(product, line, "*.test") as person:
        person.sees("a.test:80")
        (product.folder / "asked").touch()
        shown = person.sees("question 1 of 2", READY)
        assert "a.test:80" in shown
        assert "b.test" not in shown
        person.press("d")
        shown = person.sees("b.test:80", READY)
        assert "of 2" not in shown
        person.press("a")
        person.sees("status 200", "status 403")
        assert person.end() == 0
    assert origin.connections == 1


def test_ctrl_c_on_the_screen_interrupts_the_command(product: Product, origin: Origin) -> None:
    """HLD-9: the screen goes, and the run ends by SIGINT as always."""
    with asking(product, STATUS) as person:
        person.press("\x03")
        assert person.end() in {-signal.SIGINT, 128 + signal.SIGINT}
        assert "tidegate asks" not in person.text
    assert origin.connections == 0


def test_a_closed_window_refuses(product: Product, origin: Origin) -> None:
    """ASK-4: a command that outlives its window is told at once that nobody is there; what was open is refused."""
    done = product.folder / "done"
    outer = f'trap "" HUP; exec "$@" >{product.folder}/out 2>&1'
    line = f"{BODY}; echo; {BODY}; touch {done}"
    argv = product.argv(*ASK, "a.test", "--", "sh", "-c", line)
    shell = f"cd {product.folder}; {outer}"
    person = Person("sh", "-c", shell, "sh", *argv, env=product.environment)
    try:
        person.sees("a.test:80", READY)
        person.hang_up()
        until(done.exists, "the command did not go on")
    finally:
        person.__exit__()
    said = (product.folder / "out").read_text()
    assert "nobody is there to answer" in said
    assert origin.connections == 0


@pytest.mark.parametrize("piped", ["nothing", "output", "error", "a file"])
def test_ask_needs_a_terminal_of_its_own(product: Product, piped: str) -> None:
    """ASK-4, B142: in CI, and where another program could write over the question, it does not start and says why.

    With its output in a file it does.
    """
    words = ["--ask", "--", "true"]
    if piped == "nothing":
        done = product.run(*words)
        assert (done.returncode, done.stdout) == (78, "")
        assert done.stderr.startswith("tidegate: --ask: there is no terminal to ask in: ")
        return
    end = {"output": "| cat", "error": "2> >(cat)", "a file": "> file"}[piped]
    command = f'cd "$1"; shift; "$@" {end}; echo "status ${{PIPESTATUS[0]}}"'
    argv = ("bash", "-c", command, "bash", str(product.folder), *product.argv("run", *words))
    with Person(*argv, columns=250, env=product.environment) as person:
        if piped == "a file":
            person.sees("status 0")
        else:
            person.sees("status 78", f"--ask: standard {piped} goes to another program, which could write over")
        person.end()


def test_ctrl_z_on_the_screen_and_fg(product: Product, origin: Origin, tmp_path: Path) -> None:
    """HLD-9: the job stops and the shell has its terminal; in front again it is asked again, and answered."""
    line = f"cd {product.folder}; PS1='ok> '\n"
    with Person("bash", "--norc", "--noprofile", "--noediting", "-i", env=product.environment) as person:
        person.look(0.3)
        person.type(line)
        person.sees("ok> ")
        before = person.modes()
        script = product.folder / "go"
        script.write_text(STATUS + "\n")
        script.chmod(0o755)
        words = " ".join(product.argv(*ASK, "a.test", "--", "sh", str(script)))
        person.type(f"{words}\n")
        person.press("\x1a")
        person.sees("Stopped")
        assert person.modes() == before
        person.type("echo free\n")
        person.sees("\nfree\n")
        person.type("fg\n")
        person.press("a")
        person.sees_that(lambda text: "status 200" in text and text.rstrip().endswith("ok>"), "the prompt")
        person.type("exit\n")
        person.end()
    assert origin.connections == 1
    assert tmp_path


def test_behind_a_server_anybody_answers_and_the_screen_goes(product: Product, origin: Origin) -> None:
    """ASK-5: the terminal and `tidegate answer` see the same question; whoever is first counts."""
    with Served(product) as server:
        with asking(product, f"{STATUS}; {STATUS}") as person:
            person.sees("a.test:80", READY)
            number = server.json("questions")["id"]
            assert server.tidegate("answer", str(number), "allow").returncode == 0
            # The first screen went with that, which this emulator does not keep, and the second is another.
            until(lambda: person.look() and b"status 200" in person.raw, "the first curl was not let through")
            person.press("d")
            person.sees("status 403")
            assert person.end() == 0
        assert [line["by"] for line in server.actions() if line["type"] == "question.answered"][-1] == "terminal"
        task = server.tidegate("task", "create", "--profile", "closed", "--ask-for", "a.test").stdout.strip()
        with Person.at(product, "exec", task, "--ask", "--quiet", "--", "sh", "-c", STATUS) as person:
            person.press("t")
            person.sees("status 200")
            assert person.end() == 0
        done = server.tidegate("exec", task, "--quiet", "--", "sh", "-c", STATUS)
        assert done.stdout == "status 200\n"
    assert origin.connections == 3


@pytest.mark.parametrize("ask", [False, True])
def test_without_ask_nothing_of_it_is_loaded(product: Product, ask: bool) -> None:
    """Size and start of a gate that asks no one: the database is in none of the run's processes; with --ask in one."""
    with Person.at(product, "run", *(["--ask"] if ask else []), "--", "sh", "-c", "echo running; sleep 60") as person:
        person.sees("running")
        mapped = []
        for pid in _below(person.pid):
            try:
                with open(f"/proc/{pid}/maps") as file:
                    mapped.append("sqlite3" in file.read())
            except (PermissionError, FileNotFoundError):
                continue
        assert len(mapped) >= 2
        assert any(mapped) is ask


def _below(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []  # it has ended since
    return [pid, *(one for child in children for one in _below(child))]
