"""`--tool` in the product: what is refused before anything starts, and how tools end with their task."""

from __future__ import annotations

import base64
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.product import PYTHON, Product
from tests.served import until
from tests.tools_kit import URL, called, declare, post, tool

if TYPE_CHECKING:
    from pathlib import Path

TEXT = {"type": "string", "maxLength": 200}


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path) -> Product:
    """The product as root and as an ordinary user."""
    return Product(tmp_path, user=request.param == "user")


def own(product: Product) -> None:
    """Give what the test wrote to the product's user."""
    if product.user:
        for folder, folders, files in os.walk(product.home):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), 12345, 12345)


def test_only_tools_that_are_declared_and_can_run(product: Product) -> None:
    """SRV-6, HLD-16: an unknown tool is 2, one whose program is missing 78; nothing of the task has begun."""
    declare(product, here=tool("print(1)"), gone=tool("") | {"command": ["/nowhere/x"]})
    own(product)
    for name, status, what in (("nix", 2, "there is no tool 'nix'"), ("gone", 78, "is no file")):
        done = product.run("--tool", name, "--", "touch", "begun")
        assert (done.returncode, (product.folder / "begun").exists()) == (status, False)
        assert what in done.stderr
    done = product.run("--no-network", "--tool", "here", "--", "true")
    assert (done.returncode, "no meaning without a gate" in done.stderr) == (2, True)
    assert product.run("--tool", "here", "--", "touch", "begun").returncode == 0


def test_a_folder_policy_declares_no_tool(product: Product) -> None:
    """SRV-6, POL-9: neither the folder's file nor a policy may hold tools; the error names the key."""
    (product.folder / "tidegate.yaml").write_text("tools: {x: {command: [/bin/sh], description: x}}\n")
    own(product)
    done = product.run("--trust-folder", "--", "true")
    assert (done.returncode, "tools" in done.stderr) == (2, True)
    (product.folder / "tidegate.yaml").unlink()
    (product.folder / "tools.yaml").write_text("tools: {x: {command: [/bin/sh], description: x}}\n")
    own(product)
    done = product.run("--tool", "x", "--", "true")
    assert (done.returncode, "there is no tool 'x'" in done.stderr) == (2, True)


def test_a_program_in_the_workspace_is_refused(product: Product) -> None:
    """SRV-6, HLD-15: a task could write there what runs outside."""
    script = product.folder / "tool.py"
    script.write_text("print(1)")
    declare(product, bad=tool("") | {"command": [PYTHON, str(script)]})
    own(product)
    done = product.run("--tool", "bad", "--", "true")
    assert (done.returncode, "which a task can write" in done.stderr) == (78, True)


def test_a_task_sees_nothing_of_what_declares_and_logs_tools(product: Product) -> None:
    """SRV-6, HLD-15: not the file, not the log of standard error, no process, no descriptor; only its address."""
    declare(product, noisy=tool("sys.stderr.write('for the person')\nprint('done')"))
    own(product)
    script = f"{post('noisy', {})}; cat ~/.config/tidegate/tools.yaml; cat ~/.local/state/tidegate/tasks/*/tools.log; "
    script += "ls /proc/self/fd; ps ax 2>/dev/null | grep -c keeper; echo $TIDEGATE_TOOLS"
    done = product.run("--tool", "noisy", "--", "sh", "-c", script)
    assert "done" in done.stdout
    assert "for the person" not in done.stdout
    assert "description" not in done.stdout
    assert done.stdout.splitlines()[-1] == f"{URL}/"
    (log,) = (product.state / "tasks").glob("*/tools.log")
    assert log.read_text() == "[noisy: ok]\nfor the person\n"
    assert log.stat().st_mode & 0o077 == 0
    assert str(log) in done.stderr


def test_a_failure_is_told_and_written_down(product: Product) -> None:
    """SRV-6, JRN-2: the task gets status and the end of standard error; the record the status and no word of it."""
    declare(product, bad=tool("sys.stderr.write('no such ' + what)\nraise SystemExit(7)", what=TEXT))
    own(product)
    done = product.run("--tool", "bad", "--", "sh", "-c", post("bad", {"what": "hunter2"}))
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["status"], error["stderr"]) == ("failed", 7, "no such hunter2")
    (line,) = called(product)
    assert (line["result"], line["status"]) == ("failed", 7)
    assert "hunter2" not in (product.state / "log" / "actions.jsonl").read_text()
    assert "tool: bad · 1 call (1 failed)" in done.stderr


@pytest.mark.parametrize("how", ["its own end", "SIGINT", "SIGKILL"])
def test_a_tool_does_not_outlive_its_task(product: Product, how: str) -> None:
    """SRV-6: what runs ends with the command, with Ctrl-C, and where tidegate itself is killed."""
    mark = product.home / "marks"
    mark.mkdir()
    code = f"open({str(mark)!r} + '/' + str(os.getpid()), 'w').close()\ntime.sleep(1000)"
    declare(product, long=tool(code))
    own(product)
    ends = "" if how == "its own end" else "sleep 1000"
    script = f"{post('long', {})} & until [ -e {product.folder}/go ]; do sleep 0.05; done; {ends}"
    with product.start("--tool", "long", "--", "sh", "-c", script) as process:
        until(lambda: list(mark.iterdir()) or process.poll() is not None)
        (pid,) = (int(one.name) for one in mark.iterdir())
        assert os.path.exists(f"/proc/{pid}")
        (product.folder / "go").touch()
        if how != "its own end":
            process.send_signal(getattr(signal, how))
        process.communicate()
    until(lambda: not os.path.exists(f"/proc/{pid}"))
    if how != "SIGKILL":
        assert [one["result"] for one in called(product)] == ["cancelled"]
        assert list((product.state / "tasks").glob("*/tool-*")) == []


def test_a_secret_is_the_tools_and_never_the_tasks(product: Product) -> None:
    """SRV-6, INS-5: a tool names a secret; its program has the value, the task neither value nor stand-in."""
    declare(product, pays=tool("print(len(os.environ['KEY']))", more={"secrets": ["KEY"]}))
    own(product)
    value = "sk_test_0123456789abcdef"
    kept = product.tidegate("secret", "set", "KEY", "--host", "a.test", stdin=None, input=value)
    assert kept.returncode == 0, kept.stderr
    done = product.run("--tool", "pays", "--", "sh", "-c", f"{post('pays', {})}; env")
    assert done.stdout.splitlines()[0] == str(len(value)), done.stderr
    assert value not in done.stdout + done.stderr
    assert "KEY=" not in done.stdout


def test_a_value_that_a_tool_prints_does_not_get_to_the_task(product: Product) -> None:
    """SRV-6, INS-5: neither in its output nor in the standard error of a failure, nor into the log; a stand-in does."""
    code = "import base64\nsays = os.environ['KEY'] + ' ' + base64.b64encode(os.environ['KEY'].encode()).decode()\n"
    loud = tool(f"{code}print(says)", more={"secrets": ["KEY"]})
    fails = tool(f"{code}raise SystemExit('Authorization: Bearer ' + says)", more={"secrets": ["KEY"]})
    declare(product, loud=loud, fails=fails, held=loud | {"apply_task_hosts": True})
    own(product)
    value = "sk_test_0123456789abcdefXYZ"
    kept = product.tidegate("secret", "set", "KEY", "--host", "a.test", stdin=None, input=value)
    assert kept.returncode == 0, kept.stderr
    words = [word for name in ("loud", "fails", "held") for word in ("--tool", name)]
    script = "; ".join(post(name, {}) for name in ("loud", "fails", "held"))
    done = product.run(*words, "--", "sh", "-c", script)
    (log,) = (product.state / "tasks").glob("*/tools.log")
    for text in (done.stdout, done.stderr, log.read_text()):
        assert value not in text
        assert base64.b64encode(value.encode())[4:-4].decode() not in text
    assert done.stdout.count("sk_test_") >= 3  # stand-ins are of the value's shape
    assert "Authorization: Bearer sk_" in done.stdout


def test_what_a_task_says_is_on_no_command_line(product: Product) -> None:
    """SRV-6: an input with the signs of a shell and of options is data and nothing else."""
    declare(product, argv=tool("print(json.dumps([sys.argv[1:], text, sorted(os.environ)]))", text=TEXT))
    own(product)
    text = "--help; $(touch pwned) `touch pwned` | & \\u0000 \\n -- ../../x"
    done = product.run("--tool", "argv", "--", "sh", "-c", post("argv", {"text": text}))
    argv, said, environ = json.loads(done.stdout)
    assert (argv, said) == ([], text), done.stderr
    assert not (product.folder / "pwned").exists()
    assert set(environ) <= {"HOME", "LANG", "LC_CTYPE", "PATH", "TIDEGATE_TASK", "TIDEGATE_TOOL", "TMPDIR"}


def test_a_held_tool_is_in_a_network_and_a_folder_of_its_own(product: Product) -> None:
    """SRV-6, HLD-13: with apply_task_hosts it has loopback and its gate, a /tmp of its own, and writes nothing else."""
    code = f"""
import socket
def may(path):
    try:
        open(path, 'w').close()
    except OSError:
        return False
    return True
places = {{'home': may({str(product.home)!r} + '/x'), 'project': may({str(product.folder)!r} + '/x'), 'tmp': may('x')}}
state = os.path.isdir({str(product.state)!r}) and os.listdir({str(product.state)!r})
nets = [name for _, name in socket.if_nameindex()]
print(json.dumps([nets, os.getcwd(), places, state or [], os.environ['http_proxy']]))
"""
    declare(product, held=tool(code, more={"apply_task_hosts": True}))
    own(product)
    done = product.run("--tool", "held", "--", "sh", "-c", post("held", {}))
    nets, folder, places, state, proxy = json.loads(done.stdout)
    assert (nets, folder, state, proxy) == (["lo"], "/tmp", [], "http://127.0.0.1:3128"), done.stderr
    assert places == {"home": False, "project": False, "tmp": True}
    assert not os.path.exists("/tmp/x")
