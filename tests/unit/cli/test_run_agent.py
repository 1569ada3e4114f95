"""tidegate run of an agent: what it reaches by its name, by --harness, and what nothing else reaches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.accounts import need_roots_files
from tests.client_programs import trusting
from tests.clients.kit import shown
from tests.lab.api import Lab
from tests.product import PYTHON, Product

API = "api.anthropic.com:443"
ASKED = """\
#!{python}
import sys, urllib.request
for host in sys.argv[1:] or ["api.anthropic.com"]:
    try:
        print(host, urllib.request.urlopen(f"https://{{host}}/", timeout=10).status)
    except OSError as error:
        print(host, error)
"""
REACHED = "api.anthropic.com 200\n"
WAITS = f"net: {API} · refused, would wait for approval; the command line asks no one"
REFUSED = f"{WAITS} (no-rule)"
DENIED = f"net: {API} · refused, a rule denies it"
READ = f"net: {API} · inspected (harness:claude)"


@pytest.fixture(params=["root", "user"] if os.geteuid() == 0 else ["user"])
def product(request: pytest.FixtureRequest, tmp_path: Path, lab: Lab) -> Product:
    """The product on a machine whose internet has a model API, with an agent installed in the home's `agents`."""
    for host, address in (("api.anthropic.com", "1.2.3.4"), ("platform.claude.com", "1.2.3.5")):
        lab.dns.set(host, A=[address])
        lab.origin("http", address, 443, tls=host)
    product = Product(tmp_path, user=request.param == "user")
    os.chmod(shown(product, lab.ca_file), 0o644)
    product.environment.update(trusting(shown(product, lab.ca_file)))
    put(product, product.home / "agents", "claude")
    product.environment["PATH"] = f"{product.home / 'agents'}:{product.environment['PATH']}"
    return product


def put(product: Product, folder: Path, name: str) -> Path:
    """Write an agent that asks for the hosts it is given, owned by the product's user."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(ASKED.format(python=PYTHON), encoding="utf-8")
    program.chmod(0o755)
    if product.user:
        for path in (folder, program):
            os.chown(path, 12345, 12345)
    return program


def write(product: Product, name: str, text: str) -> None:
    """Write a file into the workspace."""
    (product.folder / name).write_text(text, encoding="utf-8")


def test_the_agent_that_runs_reaches_its_model(product: Product) -> None:
    """POL-10, POL-12: under balanced and careful; its other hosts wait, and a note names what was recognised."""
    need_roots_files()
    for profile in ((), ("--profile", "careful")):
        done = product.run(*profile, "--", "claude", "api.anthropic.com", "platform.claude.com")
        assert done.stdout.startswith(REACHED), done.stderr
        note, *lines = done.stderr.splitlines()
        program = product.home / "agents" / "claude"
        assert note == (
            f"tidegate: note: {program} is taken for Claude Code, which reaches its model: {API} (harness:claude); "
            "--harness claude adds its other hosts"
        )
        assert READ in lines
        assert any(line.startswith("net: platform.claude.com:443 · refused") for line in lines)


@pytest.mark.parametrize(
    "command",
    [
        [PYTHON, "{agents}/claude"],
        ["sh", "-c", "claude; true"],
        ["env", "claude"],
        ["other"],
    ],
)
def test_another_command_gets_nothing(product: Product, command: list[str]) -> None:
    """POL-12: only the agent as the command itself; one that starts it, or has another name, gets no host of it."""
    put(product, product.home / "agents", "other")
    done = product.run("--", *(word.format(agents=product.home / "agents") for word in command))
    assert REFUSED in done.stderr.splitlines()
    assert "Claude Code" not in done.stderr


def test_a_script_of_the_workspace_gets_nothing_in_silence(product: Product) -> None:
    """A program under the agent's name that a task may have left: refused with a note; --harness is a person's word."""
    need_roots_files()
    put(product, product.folder, "claude")
    done = product.run("--", "./claude")
    assert REFUSED in done.stderr.splitlines()
    assert "lies where a task can write, so it is not taken for Claude Code" in done.stderr
    before = product.environment["PATH"]
    product.environment["PATH"] = f"{product.folder}:{before}"
    done = product.run("--", "claude")
    assert REFUSED in done.stderr.splitlines()
    done = product.run("--harness", "claude", "--", "claude", "api.anthropic.com", "platform.claude.com")
    assert done.stdout.startswith(REACHED)
    assert READ in done.stderr.splitlines()
    assert "net: platform.claude.com:443 · tunneled (harness:claude)" in done.stderr.splitlines()
    product.environment["PATH"] = before
    done = product.run("--share", str(product.home / "agents"), "--", "claude")
    assert REFUSED in done.stderr.splitlines()
    done = product.run("--share", f"{product.home / 'agents'}:ro", "--", "claude")
    assert READ in done.stderr.splitlines()


def test_no_task_can_put_its_own_program_there(product: Product) -> None:
    """HLD-15: what a later run would recognise cannot be written, replaced or moved by a task before it."""
    need_roots_files()
    (product.home / "notes").mkdir()
    if product.user:
        os.chown(product.home / "notes", 12345, 12345)
    script = (
        "cd $HOME/agents; (echo x >>claude) 2>/dev/null && echo wrote;"
        "rm -f claude 2>/dev/null && echo removed; mv claude old 2>/dev/null && echo renamed;"
        "cp /bin/true new; mv -f new claude 2>/dev/null && echo replaced;"
        "mv $HOME/agents $HOME/others 2>/dev/null && echo moved; ls; touch $HOME/notes/new && echo beside"
    )
    done = product.run("--files", "normal", "--", "sh", "-c", script)
    assert done.stdout == "claude\nbeside\n", done.stderr
    done = product.run("--files", "normal", "--", "sh", "-c", script, cwd=product.home)  # the home as the workspace
    assert done.stdout == "claude\nbeside\n", done.stderr
    assert product.run("--", "claude").stdout == REACHED


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--deny", "*.anthropic.com"], f"{DENIED} (command-line)"),
        (["--ask-for", API], f"{WAITS} (command-line)"),
        (["--profile", "closed"], f"net: {API} · refused, no rule allows it (no-rule)"),
        (["--policy", "p.yaml"], f"net: {API} · refused, no rule allows it (no-rule)"),
        (["--phase", "install"], f"{REFUSED} · install"),
        (["--harness", "claude", "--deny", API], f"{DENIED} (command-line)"),
        (["--harness", "claude", "--profile", "closed"], READ),
        (["--harness", "claude", "--policy", "p.yaml"], READ),
        (["--harness", "claude", "--policy", "locked.yaml"], READ),
        (["--harness", "claude", "--policy", "denies.yaml"], f"{DENIED} (policy)"),
        (["--allow", API], f"net: {API} · inspected (command-line)"),
    ],
)  # fmt: skip
def test_the_policy_stays_above_it(product: Product, options: list[str], line: str) -> None:
    """POL-5, POL-8, POL-10: a deny wins, an equal ask too; other profiles and policies add an agent only by name."""
    if "inspected" in line and "--harness" not in options:
        need_roots_files()  # an agent that nobody names is looked for
    write(product, "p.yaml", "network: {runtime: {allow: [a.test]}}\n")
    write(product, "locked.yaml", "locked: true\nnetwork: {runtime: {allow: [a.test]}}\n")
    write(product, "denies.yaml", "locked: true\nnetwork: {runtime: {allow: [a.test], deny: ['**.anthropic.com']}}\n")
    done = product.run(*options, "--", "claude")
    assert line in done.stderr.splitlines(), done.stderr


def test_it_never_leads_to_a_private_address(product: Product, lab: Lab) -> None:
    """ADR-2: the model's name with a private address is refused, recognised or named."""
    lab.dns.set("api.anthropic.com", A=["10.9.8.7"])
    origin = lab.origin("http", "10.9.8.7", 443, tls="api.anthropic.com")
    for options in ((), ("--harness", "claude")):
        done = product.run(*options, "--", "claude")
        assert f"net: to let it through: --allow {API}" in done.stderr.splitlines()
    assert origin.connections == 0
    assert product.run("--allow", API, "--", "claude").stdout == REACHED


def test_a_harness_file_of_ones_own(product: Product) -> None:
    """POL-12: its hosts and wildcards join under its name; a task cannot change the file that this run was told."""
    put(product, product.home / "agents", "mine")
    text = 'name: mine\ncommand: mine\nnetwork: {requires: ["*.anthropic.com:443"]}\n'
    write(product, "mine.yaml", text)
    done = product.run("--harness", "mine.yaml", "--", "mine", "api.anthropic.com", "anthropic.com")
    assert f"net: {API} · inspected (harness:mine)" in done.stderr.splitlines()
    assert any(line.startswith("net: anthropic.com:443 · refused") for line in done.stderr.splitlines())
    assert "harness mine adds *.anthropic.com:443 (unverified: *.anthropic.com:443)" in done.stderr
    write(product, "sh.yaml", "name: sh\ncommand: sh\n")
    done = product.run("--harness", "sh.yaml", "--", "sh", "-c", "echo x >>sh.yaml || mv sh.yaml other.yaml")
    assert done.returncode != 0
    assert (product.folder / "sh.yaml").read_text() == "name: sh\ncommand: sh\n"


def test_an_agent_that_knows_no_proxies_is_captured(product: Product) -> None:
    """POL-12, HLD-6: with capture it just works: what it connects to by itself is judged by the same rules."""
    program = put(product, product.home / "agents", "direct")
    program.write_text(
        f"#!{PYTHON}\nimport socket\nfor host in ('api.anthropic.com', 'platform.claude.com'):\n"
        "    try:\n        print(bool(socket.create_connection((host, 443), 10)))\n"
        "    except OSError:\n        print('refused')\n",
        encoding="utf-8",
    )
    requires = "network: {requires: [api.anthropic.com:443]}"
    write(product, "direct.yaml", f"name: direct\ncommand: direct\nproxy_aware: false\n{requires}\n")
    done = product.run("--harness", "direct.yaml", "--capture", "on", "--profile", "closed", "--", "direct")
    assert done.returncode == 0, done.stderr
    assert any(line.startswith(f"net: {API} · ") and "(harness:direct)" in line for line in done.stderr.splitlines())
    assert done.stdout.splitlines()[1] == "refused"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--harness", "nobody", "--", "touch", "ran"], 2, "--harness 'nobody': there is no such harness"),
        (["--harness", "claude", "--", "touch", "ran"], 2, "is for the command 'claude', not for 'touch'"),
        (["--harness", "bad.yaml", "--", "touch", "ran"], 2, "bad.yaml:2:10: 'command' has another form: 'a/b'"),
        (["--harness", "absent.yaml", "--", "touch", "ran"], 2, "the harness file 'absent.yaml' cannot be read"),
        (["--harness", "claude", "--harness", "codex", "--", "touch", "ran"], 2, "--harness is given twice"),
        (["--harness", "claude", "--no-network", "--", "touch", "ran"], 2, "--harness has no meaning without a gate"),
        (["--harness", "touch.yaml", "--phase", "install", "--", "touch", "ran"], 2, "no meaning in the phase install"),
        (["--harness", "touch.yaml", "--capture", "off", "--", "touch", "ran"], 78, "'touch' is not proxy aware"),
    ],
)  # fmt: skip
def test_mistakes_run_nothing(product: Product, words: list[str], status: int, said: str) -> None:
    """POL-2, POL-12, HLD-7: a wrong word is exit 2, an agent without a way to the gate 78 by name; nothing has run."""
    write(product, "bad.yaml", "name: bad\ncommand: a/b\n")
    write(product, "touch.yaml", "name: touch\ncommand: touch\nproxy_aware: false\n")
    done = product.run(*words)
    assert done.returncode == status
    assert said in done.stderr
    assert not (product.folder / "ran").exists()
