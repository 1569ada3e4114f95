"""What publishes: one row each, with what it sends to a registry of real_registries.py, and what it says when refused.

A row is driven with nothing but what its task is given: no authority, no proxy and no registry's answer is its own.
In its words `{why}` is the gate's line. A registry's token is in the home folder.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from tests.clients import package_managers as fetch
from tests.clients.kit import CAPTURE, PROXY, TOOLS, Client, Place, Words
from tests.clients.registries import NAME, wheel
from tests.clients.table import BUN

USER = "tester"
TOKEN = "registry-token"
TWINE = os.path.join(TOOLS, "poetry", "bin", "twine")
WHY = "the rule allows other methods or paths only"


@dataclass(frozen=True)
class Publisher:
    """One row. `client.gets` is the request that arrives where it is allowed: method, host and path."""

    client: Client
    host: str
    fetch: str  # the row of package_managers.py or services.py that reads from the same registry

    def __str__(self) -> str:
        """Its name, in a test's."""
        return str(self.client)


def mine(p: Place) -> str:
    """Return the name of what is published, another for each place: a registry takes a version once."""
    return "tide" + hashlib.sha256(p.home.encode()).hexdigest()[:8]


def _token(p: Place) -> str:
    with open(os.path.join(p.home, TOKEN), encoding="ascii") as file:
        return file.read()


def _wheel(p: Place) -> str:
    path = p.write(f"dist/{mine(p)}-1.0-py3-none-any.whl", "")
    with open(path, "wb") as file:
        file.write(wheel(mine(p)))
    return path


def _twine(p: Place) -> list[str]:
    return [TWINE, "upload", "--non-interactive", "--disable-progress-bar", "-u", USER, "-p", "x",
            "--repository-url", p.url, _wheel(p)]  # fmt: skip


def _uv(p: Place) -> list[str]:
    return [fetch.UV, "publish", "--no-cache", "--no-config", "--trusted-publishing", "never", "-u", USER, "-p", "x",
            "--publish-url", p.url, _wheel(p)]  # fmt: skip


def _poetry(p: Place) -> list[str]:
    _wheel(p)
    p.write("pyproject.toml", f'[project]\nname = "{mine(p)}"\nversion = "1.0"\n')
    return ["env", f"POETRY_REPOSITORIES_LAB_URL={p.url}", fetch.POETRY, "publish", "--no-interaction", "--no-ansi",
            "-r", "lab", "-u", USER, "-p", "x"]  # fmt: skip


def _package(p: Place) -> None:
    p.write("package.json", f'{{"name": "{mine(p)}", "version": "1.0.0", "license": "MIT"}}')
    p.write(".npmrc", f"//{p.host}/:_authToken={_token(p)}\n")


def _npm(p: Place) -> list[str]:
    _package(p)
    return ["npm", "publish", f"--registry={p.url}"]


def _yarn1(p: Place) -> list[str]:
    _package(p)
    return ["node", fetch.YARN1, "publish", "--non-interactive", "--no-git-tag-version", "--new-version", "1.0.0",
            f"--registry={p.url}"]  # fmt: skip


def _yarn4(p: Place) -> list[str]:
    _package(p)
    p.write("yarn.lock", "")
    p.write(".yarnrc.yml", f"npmRegistryServer: '{p.url}'\nenableTelemetry: false\nhttpRetry: 0\n")
    script = f"node {fetch.YARN4} install >/dev/null && exec node {fetch.YARN4} npm publish"
    return ["env", f"YARN_GLOBAL_FOLDER={p.folder}/yarn", f"YARN_NPM_AUTH_TOKEN={_token(p)}", "sh", "-c", script]


def _pnpm(p: Place) -> list[str]:
    _package(p)
    p.write("pnpm-workspace.yaml", "fetchRetries: 0\n")
    return [fetch.PNPM, "publish", "--no-git-checks", f"--registry={p.url}"]


def _bun(p: Place) -> list[str]:
    _package(p)
    return ["env", f"NPM_CONFIG_TOKEN={_token(p)}", BUN, "publish", f"--registry={p.url}"]


def _cargo(p: Place, *words: str) -> list[str]:
    p.write("src/lib.rs", "")
    p.write("Cargo.toml", f'[package]\nname = "{mine(p)}"\nversion = "1.0.0"\nlicense = "MIT"\ndescription = "x"\n')
    p.write(".cargo/config.toml", f'[registries]\nlab = {{ index = "sparse+{p.url}index/" }}\n')
    rustup = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    return ["env", f"CARGO_HOME={p.folder}/cargo", "CARGO_NET_RETRY=0", f"RUSTUP_HOME={rustup}",
            "CARGO_REGISTRIES_LAB_TOKEN=x", "cargo", *words, "--registry", "lab"]  # fmt: skip


def _gem(p: Place, *words: str) -> list[str]:
    p.write(
        "one.gemspec",
        f"Gem::Specification.new {{ |s| s.name = '{mine(p)}'; s.version = '1.0'; s.summary = s.author = 't'\n"
        f"  s.homepage = '{p.url}'; s.license = 'MIT'; s.files = [] }}\n",
    )
    script = f"gem build -q one.gemspec >/dev/null 2>&1; exec gem {' '.join(words)} --host {p.url}gems"
    return ["env", f"XDG_DATA_HOME={p.folder}/data", "GEM_HOST_API_KEY=x", "sh", "-c", script]


def _maven(p: Place) -> list[str]:
    settings = p.write(
        "settings.xml",
        "<settings><profiles><profile><id>x</id><pluginRepositories><pluginRepository><id>here</id>"
        "<url>file:///usr/share/maven-repo</url></pluginRepository></pluginRepositories></profile></profiles>"
        "<activeProfiles><activeProfile>x</activeProfile></activeProfiles></settings>",
    )
    return ["mvn", "-B", "-q", "-s", settings, f"-Dmaven.repo.local={p.folder}/m2",
            "org.apache.maven.plugins:maven-deploy-plugin:3.0.0:deploy-file", f"-Durl={p.url}maven",
            "-DrepositoryId=lab", f"-Dfile={p.write('mine.jar', 'x')}", "-DgroupId=test", "-DartifactId=mine",
            "-Dversion=1.0", "-Dpackaging=jar"]  # fmt: skip


def _git(p: Place) -> list[str]:
    script = (
        "git init -q mine && cd mine && git -c user.name=t -c user.email=t@a.test commit -q --allow-empty -m x && "
        f"exec git push -q {p.url}git/one.git HEAD:refs/heads/mine"
    )
    return ["sh", "-c", script]


def _refused(status: int, *lines: str) -> dict[tuple[str, str], Words]:
    words = Words(status, lines)
    return {(PROXY, "https"): words, (CAPTURE, "https"): words}


_PHRASE = f"Forbidden by tidegate: {WHY}"
_PUT = "PUT npm.test /tide…"
_CARGO = "  the remote server responded with an error (status 403 Forbidden): {why}"
_CARGO_V, _GEM_V, _NPM_V = ("cargo", "--version"), ("gem", "--version"), ("npm", "--version")

PUBLISHERS: tuple[Publisher, ...] = (
    Publisher(Client(
        "twine", (TWINE, "--version"), "7.0", _twine, "POST pypi.test /",
        _refused(1, "ERROR    HTTPError: 403 Forbidden from https://{host}/", f"         {_PHRASE}"),
    ), "pypi.test", "pip"),
    Publisher(Client(
        "uv publish", (fetch.UV, "--version"), "0.13", _uv, "POST pypi.test /",
        _refused(2, '  cause: Server returned status code 403 Forbidden. Server says: {"error": "{why}", …'),
    ), "pypi.test", "uv"),
    Publisher(Client(
        "poetry publish", (fetch.POETRY, "--version"), "2.5", _poetry, "POST pypi.test /",
        _refused(1, f'HTTP Error 403: {_PHRASE} | b"{{why}}\\n"'),
    ), "pypi.test", "poetry"),
    Publisher(Client(
        "npm publish", _NPM_V, "11.19", _npm, _PUT,
        _refused(1, f"npm error 403 403 {_PHRASE} - PUT https://{{host}}/tide… - {{why}}"),
    ), "npm.test", "npm"),
    Publisher(Client(
        "Yarn 1 publish", ("node", fetch.YARN1, "--version"), "1.22", _yarn1, _PUT,
        _refused(1, 'error Couldn\'t publish package: "https://{host}/tide…: {why}"'),
    ), "npm.test", "Yarn 1"),
    Publisher(Client(
        "Yarn 4 publish", ("node", fetch.YARN4, "--version"), "4.18", _yarn4, _PUT,
        _refused(1, "➤ YN0035: {why}", f"➤ YN0035:   Response Code: 403 ({_PHRASE})"),
    ), "npm.test", "Yarn 4"),
    Publisher(Client(
        "pnpm publish", (fetch.PNPM, "--version"), "12.21", _pnpm, _PUT,
        _refused(
            1, "  × Failed to publish package tide…@1.0.0 (status 403 Forbidden):",  # it shows the JSON as it is
            f'  │ {{"error": "{{host}}:443: {WHY}',
            "  │ [method-not-allowed; rule '{host}:443' (policy, read.yaml:5:16)]\",",
        ),
    ), "npm.test", "pnpm"),
    Publisher(Client(
        "bun publish", (BUN, "--version"), "1.4", _bun, _PUT,
        _refused(1, f"403 {_PHRASE}: https://{{host}}/tide…", " - {why}"),
    ), "npm.test", "Bun"),
    Publisher(Client(
        "cargo publish", _CARGO_V, "1.95", lambda p: _cargo(p, "publish", "--no-verify", "--allow-dirty"),
        "PUT crates.test /api/v1/crates/new", _refused(101, _CARGO),
    ), "crates.test", "cargo"),
    Publisher(Client(
        "cargo yank", _CARGO_V, "1.95", lambda p: _cargo(p, "yank", f"{NAME}@1.0.0"),
        f"DELETE crates.test /api/v1/crates/{NAME}/1.0.0/yank", _refused(101, _CARGO),
    ), "crates.test", "cargo"),
    Publisher(Client(
        "gem push", _GEM_V, "3.3", lambda p: _gem(p, "push", f"{mine(p)}-1.0.gem"),
        "POST gems.test /gems/api/v1/gems", _refused(1, "{why}"),
    ), "gems.test", "gem"),
    Publisher(Client(
        "gem yank", _GEM_V, "3.3", lambda p: _gem(p, "yank", NAME, "-v", "1.0"),
        "DELETE gems.test /gems/api/v1/gems/yank", _refused(0, "{why}"),  # that it ends with 0 is gem's own way
    ), "gems.test", "gem"),
    Publisher(Client(
        "mvn deploy", ("mvn", "--version"), "3.8", _maven, "PUT maven.test /maven/test/mine/1.0/mine-1.0.jar",
        _refused(1, "[ERROR] Failed to execute goal …: Failed to deploy artifacts: Could not transfer artifact "
                 "test:mine:jar:1.0 from/to lab (https://{host}/maven): authorization failed for "
                 f"https://{{host}}/maven/test/mine/1.0/mine-1.0.jar, status: 403 {_PHRASE} -> [Help 1]"),
    ), "maven.test", "Maven"),
    Publisher(Client(
        "git push", ("git", "--version"), "2.39", _git, "POST git.test /git/one.git/git-receive-pack",
        _refused(1, "error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403"),
    ), "git.test", "git over https"),
)  # fmt: skip
