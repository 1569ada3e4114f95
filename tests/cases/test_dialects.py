"""`tidegate run --policy FILE` with files of other products, against the lab: their own rules hold (POL-15)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.product import Product
from tests.served import Served
from tidegate.runtime.suffix_list import PLACES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.api import Lab

HOSTS = ("a.test", "b.a.test", "c.b.a.test", "x.test", "evil.a.test")
CURL = "curl -sS -o /dev/null -w '%{http_code}\\n' --max-time 60"
# What each file is, and what a request to each of HOSTS on port 80 is answered with.
YES, NO = "200", "403"
FILES = {
    "kraft": (
        "repos.yaml",
        "repos: [{path: /x, sandbox: {network: {runtime: {allow: [a.test, '*.a.test'], deny: [evil.a.test]}}}}]",
        (YES, YES, NO, NO, NO),
    ),
    "gurtos": ("task.json", '{"hosts": ["a.test:80", "*.a.test", "*.x.test:80"]}', (YES, YES, YES, NO, YES)),
    "kule": (
        "kule.yaml",
        "rules: [{effect: net.connect, host: a.test, verdict: pass},{effect: net.connect, host: x.test, verdict: ask}]",
        (YES, NO, NO, NO, NO),
    ),
    "sandbox-runtime": (
        ".srt-settings.json",
        '{"network": {"allowedDomains": ["*.a.test", "x.test:443"], "deniedDomains": ["evil.a.test"]}}',
        (NO, YES, YES, NO, NO),
    ),
    "claude": (
        "settings.json",
        (
            '{"sandbox": {"network": {"allowedDomains": ["*.a.test"]}},'
            ' "permissions": {"deny": ["WebFetch(domain:b.a.test)"]}}'
        ),
        (NO, NO, NO, NO, YES),
    ),
    "codex": (
        "config.toml",
        (
            "default_permissions = 'w'\n[permissions.w.network]\nenabled = true\n[permissions.w.network.domains]\n"
            '"**.a.test" = "allow"\n"evil.a.test" = "deny"\n'
        ),
        (YES, YES, YES, NO, NO),
    ),
    "smokescreen": (
        "acl.yaml",
        "services: [{name: s, action: enforce, allowed_domains: ['*.a.test']}]\nglobal_deny_list: [evil.a.test]\n",
        (NO, YES, YES, NO, NO),
    ),
    "gh-aw": (
        "workflow.md",
        "---\non: push\nnetwork:\n  allowed: [a.test, 'https://x.test']\n  blocked: [evil.a.test]\n---\nDo it.\n",
        (YES, YES, YES, NO, NO),
    ),
}


@pytest.fixture
def product(lab: Lab, tmp_path: Path) -> Product:
    """The product as an ordinary user, and the hosts."""
    for host in HOSTS:
        lab.dns.set(host, A=["1.2.3.4"])
    lab.origin("http", "1.2.3.4", 80)
    return Product(tmp_path, user=True)


def write(product: Product, name: str, text: str) -> str:
    """Write a file beside the workspace and return its path."""
    path = product.home / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", FILES)
def test_the_file_itself_is_the_policy(product: Product, name: str) -> None:
    """POL-15: what passes, seen by curl; the run says whose file it was, and what `import` prints does the same."""
    if name == "gurtos" and not any(map(os.path.exists, PLACES)):
        pytest.skip("no list of public suffixes here: apt install publicsuffix")
    file, text, wanted = FILES[name]
    path = write(product, file, text)
    line = "; ".join(f"{CURL} http://{host}/" for host in HOSTS)
    done = product.run("--policy", path, "--", "sh", "-c", line)
    assert tuple(done.stdout.split()) == wanted, done.stderr
    assert f"note: {path} is " in done.stderr
    assert done.stderr.count(" kept exactly") == 1
    printed = product.tidegate("policy", "import", path)
    assert printed.returncode == 0
    again = product.run("--quiet", "--policy", write(product, "policy.yaml", printed.stdout), "--", "sh", "-c", line)
    assert tuple(again.stdout.split()) == wanted


def test_limited_is_reading(product: Product) -> None:
    """POL-15: `mode = "limited"` of Codex lets GET pass and refuses POST."""
    config = '[network_proxy]\nenabled = true\nmode = "limited"\nallowed_domains = ["a.test"]\n'
    path = write(product, "config.toml", config)
    done = product.run("--policy", path, "--", "sh", "-c", f"{CURL} http://a.test/; {CURL} -X POST http://a.test/")
    assert done.stdout.split() == [YES, NO]
    assert "the rule allows other methods or paths only" in done.stderr


def test_unrestricted_says_so_each_time(product: Product) -> None:
    """POL-15: no gate at all, a warning at each launch; beside `--deny`, which would be lost, nothing is launched."""
    path = write(product, "repos.yaml", f"repos: [{{path: {product.folder}, sandbox: {{unrestricted_network: true}}}}]")
    for _ in range(2):
        done = product.run("--policy", path, "--", "sh", "-c", f"{CURL} --noproxy '*' http://1.2.3.4/")
        assert (done.returncode, done.stdout.split()) == (0, [YES]), done.stderr
        assert f"says unrestricted_network of {product.folder}: no gate and no policy" in done.stderr
        assert "warning: --open-network" in done.stderr
    done = product.run("--policy", path, "--deny", "a.test", "--", "true")
    assert done.returncode == 78
    assert "leave --deny out" in done.stderr


def test_behind_a_server_it_is_the_same(product: Product) -> None:
    """POL-15: a run, a task of the server's, and a file that asks for no gate."""
    kept = write(product, "task.json", '{"hosts": ["a.test:80"]}')
    opened = write(
        product, "repos.yaml", f"repos: [{{path: {product.folder}, sandbox: {{unrestricted_network: true}}}}]"
    )
    line = f"{CURL} http://a.test/; {CURL} http://x.test/"
    with Served(product):
        done = product.run("--policy", kept, "--", "sh", "-c", line)
        assert done.stdout.split() == [YES, NO], done.stderr
        made = product.tidegate("task", "create", "--policy", kept)
        assert made.returncode == 0, made.stderr
        assert f"note: {kept} is GurtOS's" in made.stderr
        done = product.tidegate("exec", made.stdout.strip(), "--", "sh", "-c", line)
        assert done.stdout.split() == [YES, NO], done.stderr
        done = product.run("--policy", opened, "--", "sh", "-c", f"{CURL} --noproxy '*' http://1.2.3.4/")
        assert (done.returncode, done.stdout.split()) == (0, [YES]), done.stderr
        refused = product.tidegate("task", "create", "--policy", opened)
        assert refused.returncode == 78
        assert "no gate and no policy" in refused.stderr


def test_neither_policy_nor_unrestricted_launches_nothing(product: Product) -> None:
    """POL-15, HLD-7: a configuration error that names the repository and both fixes; nothing ran."""
    path = write(product, "repos.yaml", "repos: [{path: /code/x, sandbox: {kind: docker, network: {}}}]")
    done = product.run("--policy", path, "--", "touch", "ran")
    assert done.returncode == 78
    assert "repository /code/x" in done.stderr
    assert "unrestricted_network: true" in done.stderr
    assert "network: {runtime:" in done.stderr
    assert not (product.folder / "ran").exists()


def test_a_flag_of_kules_shuts_the_network(product: Product) -> None:
    """POL-15: `--no-network` in its file: nothing connects, and what was to be run does run."""
    path = write(product, "kule.yaml", "profile: balanced\nflags: [--no-network]\n")
    done = product.run("--policy", path, "--", "sh", "-c", f"{CURL} http://1.2.3.4/; echo ran")
    assert done.stdout.split() == ["000", "ran"]
    assert f"warning: {path}:2:9 says --no-network" in done.stderr
