"""Read-only registries and git held to fetch, through the product's `run`: real TLS, real git (INS-7).

Every package manager's publish is in test_publishers.py; here are the tables of presets, and what lifts them.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.clients.git_site import git_site
from tests.clients.kit import ALLOWED, net_lines
from tests.https_site import HttpsSite
from tidegate.runtime.client_settings import TRUST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab, Origin
    from tests.product import Product

NPM = "registry.npmjs.org"
BULK = "/-/npm/v1/security/advisories/bulk"
WHY = "package registries are read-only here; a rule of your own for this host, or 'registries: tunnel', lifts that"
READ = f"net: {NPM}:443 · inspected (package-registries)"
REFUSED = f"net: {NPM}:443 · refused, {WHY} (package-registries)"
CURL = ("curl", "-sS", "--noproxy", "*")  # captured; nothing leads it to the gate


def configure(product: Product, text: str) -> None:
    """Write the user's own policy."""
    folder = product.home / ".config" / "tidegate"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(text)


@pytest.fixture
def npm(lab: Lab, product: Product) -> Origin:
    """The npm registry, in the lab."""
    configure(product, "registries: read\n")
    lab.dns.set(NPM, A=[ALLOWED])
    return lab.origin("http", ALLOWED, 443, tls=NPM, body="said\n")


@pytest.mark.parametrize("curl", [CURL, ("curl", "-sS")], ids=["capture", "proxy"])
def test_a_registry_is_read_only(product: Product, npm: Origin, curl: tuple[str, ...]) -> None:
    """INS-7, B127: what reads passes, an audit and a scoped name too; a publish is refused, and the line says why."""
    url = f"https://{NPM}"
    for words in (
        (f"{url}/x",),
        (f"{url}/@types%2fnode",),
        ("-I", f"{url}/x"),
        ("-r", "0-1", f"{url}/x"),
        ("-d", "{}", f"{url}{BULK}"),
    ):
        done = product.run("--", *curl, *words)
        assert (done.returncode, net_lines(done)) == (0, [READ]), done.stdout
    before = npm.requests
    for words in (
        ("-T", os.devnull, f"{url}/x"),
        ("-X", "DELETE", f"{url}/x/-rev/1"),
        ("-X", "PUT", f"{url}/-/package/x/dist-tags/latest"),
        ("-d", "{}", f"{url}/-/v1/login"),
        ("-d", "{}", f"{url}{BULK}/x"),
        ("-H", "X-HTTP-Method-Override: PUT", f"{url}/x"),
    ):
        done = product.run("--fail-on-refusal", "--", *curl, *words)
        assert (done.returncode, net_lines(done)[0]) == (77, REFUSED), (words, done.stdout, done.stderr)
        assert (
            f"{NPM}:443: {WHY} [registry-read-only; rule '{NPM}:443' (package-registries, preset npm)]" in done.stdout
        )
    assert npm.requests == before


@pytest.mark.parametrize(
    ("policy", "options", "line"),
    [
        ("registries: tunnel\n", (), f"net: {NPM}:443 · captured (package-registries)"),
        ("registries: read\n", ("--registries", "tunnel"), f"net: {NPM}:443 · captured (package-registries)"),
        ("", ("--allow", f"{NPM}:443"), f"net: {NPM}:443 · captured (command-line)"),
        (f"registries: read\ninspect: {{never: [{NPM}]}}\n", (), f"net: {NPM}:443 · captured (package-registries)"),
    ],
)
def test_what_lifts_it(product: Product, npm: Origin, policy: str, options: tuple[str, ...], line: str) -> None:
    """INS-7, INS-9: `registries: tunnel`, `--registries`, a rule for the host, `inspect: never`: a tunnel, a PUT."""
    if policy:
        configure(product, policy)
    done = product.run(*options, "--", *CURL, "-T", os.devnull, f"https://{NPM}/x")
    assert (done.stdout, net_lines(done)) == ("said\n", [line]), done.stderr
    assert npm.requests == 1
    done = product.tidegate("policy", "explain", *options, NPM)
    assert "inspected  no: a tunnel, its bytes are not read; " in done.stdout


def test_a_mirror_is_held_to_the_same(product: Product, lab: Lab) -> None:
    """INS-7, POL-11: below the mirror's own path; another path that only looks like it is refused."""
    lab.dns.set("npm.corp.test", A=[ALLOWED])
    lab.origin("http", ALLOWED, 443, tls="npm.corp.test", body="said\n")
    configure(product, "registries: read\npresets: {npm: ['npm.corp.test:443']}\n")
    url = "https://npm.corp.test/repository/npm"
    done = product.run("--", *CURL, "-d", "{}", f"{url}{BULK}", f"{url}/-/v1/login")
    assert done.stdout.startswith("said\n"), done.stderr
    assert "[registry-read-only; rule 'npm.corp.test:443' (package-registries, " in done.stdout


# --- git


def git(*words: str, cwd: Path) -> None:
    """Run git on the machine, outside the gate."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@a.test", "-c", "init.defaultBranch=main")
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *words], cwd=cwd, env=environment, check=True, capture_output=True)


@pytest.fixture
def site(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """Two repositories at https://a.test/git/."""
    with git_site(product, lab, tmp_path) as made:
        seed = tmp_path / "seed"
        seed.mkdir()
        git("init", "-q", cwd=seed)
        git("commit", "-qm", "first", "--allow-empty", cwd=seed)
        for name in ("one", "two"):
            git("clone", "-q", "--bare", str(seed), str(made.repositories / f"{name}.git"), cwd=tmp_path)
        (product.home / ".gitconfig").write_text("[user]\n\tname = t\n\temail = t@a.test\n")
        yield made


CLONE = "git clone -q https://a.test/git/{name}{suffix} {name}"
PUSH = CLONE + " && cd {name} && git commit -qm second --allow-empty && git push -q origin HEAD"


@pytest.mark.parametrize(
    ("held", "name", "suffix", "fetches", "pushes"),
    [
        ("read", "one", ".git", True, False),
        ("write", "one", ".git", True, True),
        ("{read: ['git/*'], write: [git/one]}", "one", ".git", True, True),
        ("{read: ['git/*'], write: [git/one]}", "two", ".git", True, False),
        ("{write: [git/one]}", "two", ".git", False, False),
        ("{read: [git/on]}", "one", ".git", False, False),
    ],
)
def test_git_is_held(
    product: Product,
    site: HttpsSite,
    client: Callable[[str], str],
    held: str,
    name: str,
    suffix: str,
    *,
    fetches: bool,
    pushes: bool,
) -> None:
    """INS-7: real git over HTTPS: a clone passes where it may, a push ends at its first request, and git says why."""
    client("git")
    (product.folder / "held.yaml").write_text(
        f"network:\n  runtime:\n    allow:\n      - {{host: 'a.test:443', git: {held}}}\n"
    )
    script = PUSH.format(name=name, suffix=suffix)
    done = product.run("--policy", "held.yaml", "--", "sh", "-c", script)
    assert (done.returncode == 0) is pushes, done.stderr
    assert (product.folder / name / ".git").exists() is fetches
    posted = [one for one in site.requests if "git-receive-pack" in one]
    assert bool(posted) is pushes
    if not pushes:
        why = "a push is refused: git may only fetch here" if fetches else "the rule allows other methods or paths only"
        assert f"net: a.test:443 · refused, {why}" in done.stderr
        assert f"remote: a.test:443: {why}" in done.stderr


def test_git_of_a_whole_policy(product: Product, site: HttpsSite, client: Callable[[str], str]) -> None:
    """INS-7: what the policy holds stays held where a rule lets the host through; other hosts are not concerned."""
    client("git")
    (product.folder / "held.yaml").write_text("git: {read: ['a.test/**']}\n")
    options = ("--policy", "held.yaml", "--allow", "a.test:443")
    done = product.run(*options, "--", "sh", "-c", PUSH.format(name="one", suffix=".git"))
    assert done.returncode != 0
    assert "remote: a.test:443: a push is refused: git may only fetch here" in done.stderr
    assert "net: a.test:443 · inspected (command-line)" in done.stderr
    assert not [one for one in site.requests if "git-receive-pack" in one]
    explained = product.tidegate("policy", "explain", *options, "a.test")
    assert "inspected  yes: what git may do there is judged inside TLS" in explained.stdout


def test_a_machine_without_roots_runs_what_reads_none(product: Product, npm: Origin) -> None:
    """INS-7, HLD-7: with nothing to verify a registry against it is refused, and says how; the task runs all the same.

    Where a rule of a person's wants something read, nothing starts.
    """
    if os.geteuid() != 0:
        pytest.skip("another /etc/ssl takes root")
    for name in ("SSL_CERT_DIR", "JAVA_HOME", *(row[0] for row in TRUST)):
        product.environment.pop(name, None)
    hide = 'for d in /etc/ssl /etc/pki; do [ ! -d $d ] || mount -t tmpfs none $d; done; exec "$@"'
    (product.folder / "read.yaml").write_text("network: {runtime: {allow: [{host: 'a.test:443', methods: [GET]}]}}\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = ["unshare", "--mount", "sh", "-c", hide, "sh", *product.argv("run", *words)]
        return subprocess.run(
            argv, cwd=product.folder, env=product.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip

    done = run("--", "sh", "-c", f"echo runs; curl -sSk https://{NPM}/x")
    assert done.stdout.startswith("runs\n"), done.stderr
    why = (
        "registries are read-only, and this task cannot be read inside TLS; 'registries: tunnel' lets them pass unread"
    )
    assert net_lines(done)[0] == f"net: {NPM}:443 · refused, {why} (package-registries)"
    assert npm.requests == 0
    done = run("--policy", "read.yaml", "--", "echo", "runs")
    assert (done.returncode, done.stdout) == (78, "")
    assert (
        "hosts are to be read inside TLS, and this machine has no roots to verify destinations against" in done.stderr
    )
