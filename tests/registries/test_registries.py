"""Real package managers against the real registries, and the two commands of README from a fresh clone.

This folder runs on the machine's own network (tests/lab/plugin.py). Where a registry does not answer, its tests are
skipped and say so. Where it has an address that is not public, it needs a written rule: as a company mirror of its
preset, which is read-only like the preset, or by an exact `--allow HOST:443`, which is a tunnel; that the
refusal names that very rule is tested there too. Which hosts pip and npm ask is this machine's configuration, so it is
read, not assumed.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.client_programs import note_client, program_version
from tests.product import REPOSITORY, Product

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.network

PYPI, FILES = "pypi.org", "files.pythonhosted.org"
SIX = "https://pypi.org/simple/six/"
PRIVATE = (
    "refused, it leads to a private address, which needs a written rule for exactly this host (package-registries)"
)
PIP = [sys.executable, "-m", "pip"]
STATUS = f'import urllib.request as u; print(u.urlopen("{SIX}").status)'

# pip without this machine's configuration, so that what it installs comes from PyPI and not from a folder here.
PLAIN_PIP = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_NO_CACHE_DIR": "1"}


@functools.cache
def why_silent(url: str) -> str | None:
    """Return why a registry does not answer, None where it does."""
    try:
        with urllib.request.urlopen(url, timeout=8) as answer:
            answer.read(1)
    except (OSError, urllib.error.URLError) as error:
        return f"{url} does not answer here: {error}"
    return None


def need(url: str) -> None:
    """Skip the test where a registry does not answer."""
    reason = why_silent(url)
    if reason is not None:
        pytest.skip(reason)


@functools.cache
def is_public(host: str) -> bool:
    """Whether every address of a host is a public one."""
    found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)  # noqa: TID251  what the machine itself would see
    return all(ipaddress.ip_address(address[0].split("%")[0]).is_global for *_, address in found)


def rules(*hosts: str) -> list[str]:
    """Return the options that the hosts need to be reached from here."""
    return [word for host in hosts if not is_public(host) for word in ("--allow", f"{host}:443")]


def reached(host: str) -> str:
    """Return the `net:` line of a host that was reached with `rules(host)`: a rule of one's own makes it a tunnel."""
    return f"net: {host}:443 · {'inspected (package-registries)' if is_public(host) else 'tunneled (command-line)'}"


def inspected(host: str) -> str:
    """Return the `net:` line of a host that was reached with `held(preset, host)`."""
    return f"net: {host}:443 · inspected (package-registries)"


def held_pypi(product: Product) -> list[str]:
    """Return the options with which PyPI is read-only, whatever its addresses are."""
    return held(product, "pypi", PYPI, FILES)


def held(product: Product, preset: str, *hosts: str) -> list[str]:
    """Return the options with which the hosts are a preset's, read-only, whatever their addresses are."""
    (product.folder / "held.yaml").write_text(
        f"profile: balanced\npresets: {{{preset}: [{', '.join(f'{host}:443' for host in hosts)}]}}\n"
    )
    return ["--policy", "held.yaml"]


def net_lines(done: subprocess.CompletedProcess[str]) -> set[str]:
    """Return what tidegate said, without counts."""
    return {line.split(" ×")[0] for line in done.stderr.splitlines() if line.startswith("net:")}


@pytest.fixture
def product(tmp_path: Path) -> Product:
    """The product with the environment of whoever runs the tests, and records of its own."""
    made = Product(tmp_path, user=False)
    made.environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV", "TIDEGATE_TASK")
    }
    made.environment["XDG_STATE_HOME"] = str(tmp_path / "state")
    return made


def configured(command: list[str]) -> str:
    """Return what a tool says of its configuration, '' where it says nothing."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else ""


@functools.cache
def pip_hosts() -> tuple[str, ...]:
    """Return the hosts that pip asks here: its index, then further ones and where PyPI keeps its files."""
    values = dict(line.split("=", 1) for line in configured([*PIP, "config", "list"]).splitlines() if "=" in line)
    urls = {"index-url": "https://pypi.org/simple", "extra-index-url": "", "find-links": ""}
    for key, value in values.items():  # `global.index-url='…'`, `:env:.index-url='…'`
        name = key.rpartition(".")[2]
        if name in urls:
            urls[name] = value.strip("'\"").replace("\\n", " ")
    listed = [urlsplit(url).hostname for text in urls.values() for url in text.split() if url.startswith("https:")]
    return tuple(dict.fromkeys([host for host in listed if host] + ([FILES] if PYPI in listed else [])))


# --- README


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone of this repository, set up by nobody."""
    need(SIX)
    folder = tmp_path_factory.mktemp("fresh") / "tidegate"
    subprocess.run(["git", "clone", "-q", str(REPOSITORY), str(folder)], check=True, stdin=subprocess.DEVNULL)
    return folder


@pytest.mark.slow
def test_readmes_commands_in_a_fresh_clone(clone: Path, product: Product) -> None:
    """README, issue 2: the first use sets itself up and says so; both commands reach the registry, word for word."""
    if PYPI not in pip_hosts():
        pytest.skip(f"pip asks {pip_hosts()[0]} here, not {PYPI}")

    def tidegate(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["./tidegate", "run", *words], cwd=clone, env=product.environment, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, timeout=300,
        )  # fmt: skip

    assert not (clone / ".venv").exists()
    first = tidegate(*rules(PYPI), "--", "python3", "-c", STATUS)
    assert (first.returncode, first.stdout) == (0, "200\n"), first.stderr
    assert first.stderr.startswith(f"tidegate: setting up its environment in {clone}/.venv")
    assert first.stderr.splitlines()[-1] == reached(PYPI)
    again = tidegate(*rules(PYPI), "--", "python3", "-c", STATUS)
    assert (again.stdout, again.stderr) == ("200\n", f"{reached(PYPI)}\n")

    download = tidegate(*rules(*pip_hosts()), "--", "pip", "download", "--no-deps", "-d", "six", "six")
    assert download.returncode == 0, download.stderr
    assert "Successfully downloaded six" in download.stdout
    # A wheel that this machine keeps in a folder is not fetched.
    expected = {reached(PYPI)} | ({reached(FILES)} if "Downloading six" in download.stdout else set())
    assert net_lines(download) == expected
    assert list((clone / "six").glob("six-*"))


@pytest.mark.parametrize(
    "command", [[sys.executable, "-c", STATUS], [*PIP, "download", "--retries", "0", "-q", "--no-deps", "six"]]
)
def test_the_refusal_names_the_line_that_then_works(product: Product, command: list[str]) -> None:
    """ADR-2: where the registry has a private address, its preset does not reach it, and the refusal says what does."""
    need(SIX)
    if is_public(PYPI):
        pytest.skip(f"{PYPI} has public addresses here: the preset reaches it")
    if "pip" in command:
        product.environment |= PLAIN_PIP
    refused = product.run("--", *command)
    assert refused.returncode != 0
    assert net_lines(refused) == {f"net: {PYPI}:443 · {PRIVATE}", f"net: to let it through: --allow {PYPI}:443"}
    line = next(one for one in refused.stderr.splitlines() if one.startswith("net: to let it through: "))
    words = line.removeprefix("net: to let it through: ").split()
    done = product.run(*words, *rules(FILES), "--", *command)
    assert done.returncode == 0, done.stderr
    assert reached(PYPI) in net_lines(done)


# --- pip, and what it brings


def bring(product: Product, *packages: str) -> Path:
    """Install packages from PyPI into a folder of the task's, by pip behind the gate."""
    need(SIX)
    product.environment |= PLAIN_PIP
    done = product.run(*held_pypi(product), "--", *PIP, "install", "-q", "--target", "brought", *packages, timeout=200)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"no {' '.join(packages)} for this Python: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert net_lines(done) == {inspected(PYPI), inspected(FILES)}
    return product.folder / "brought"


def test_pip_downloads_from_pypi(product: Product, client: Callable[[str], str]) -> None:
    """GAT-10, INS-7, B61: index and file host, each read inside TLS, where nothing but reading passes."""
    client("pip")
    need(SIX)
    product.environment |= PLAIN_PIP
    done = product.run(*held_pypi(product), "--", *PIP, "download", "-q", "--no-deps", "-d", "six", "six")
    assert done.returncode == 0, done.stderr
    assert list((product.folder / "six").glob("six-*.whl"))
    assert net_lines(done) == {inspected(PYPI), inspected(FILES)}


AIOHTTP = """
import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        for url in ("https://pypi.org/simple/six/", "http://b.invalid/", "https://b.invalid/"):
            try:
                async with session.get(url) as answer:
                    print(answer.status)
            except aiohttp.ClientHttpProxyError as error:
                print("proxy", error.status)
asyncio.run(main())
"""


@pytest.mark.slow
def test_aiohttp_with_trust_env(product: Product, record_property: Callable[[str, object], None]) -> None:
    """GAT-10, B133: aiohttp follows the variables where it is told to; a refusal is its own kind of error."""
    folder = bring(product, "aiohttp")
    product.environment["PYTHONPATH"] = str(folder)
    version = configured(
        ["env", f"PYTHONPATH={folder}", sys.executable, "-c", "import aiohttp as a; print(a.__version__)"]
    )
    note_client(record_property, "aiohttp", version)
    done = product.run(*held_pypi(product), "--", sys.executable, "-c", AIOHTTP)
    assert done.stdout.split("\n") == ["200", "403", "proxy 403", ""], done.stderr
    assert inspected(PYPI) in net_lines(done)


@pytest.mark.slow
def test_uv_installs_and_is_refused(product: Product, record_property: Callable[[str, object], None]) -> None:
    """GAT-10: uv, itself brought by pip, reads the variables (Rust's reqwest); a refusal is a tunnel that failed."""
    uv = str(bring(product, "uv") / "bin" / "uv")
    note_client(record_property, "uv", program_version((uv, "--version")) or "")
    product.environment["UV_HTTP_RETRIES"] = "0"
    install = [uv, "--no-cache", "--no-config", "pip", "install", "-q", "--python", sys.executable]
    done = product.run(*held_pypi(product), "--", *install, "--target", "got", "six")
    assert done.returncode == 0, done.stderr
    assert (product.folder / "got" / "six.py").exists()
    assert net_lines(done) == {inspected(PYPI), inspected(FILES)}
    done = product.run("--deny", PYPI, "--", *install, "--target", "more", "six")
    assert done.returncode != 0
    assert "tunnel error" in done.stderr
    assert any(line.startswith(f"net: {PYPI}:443 · refused, ") for line in net_lines(done))


# --- npm


@functools.cache
def npm_registry() -> str:
    """Return the registry that npm asks here."""
    return configured(["npm", "config", "get", "registry"]) or "https://registry.npmjs.org/"


@pytest.fixture
def npm(client: Callable[[str], str]) -> str:
    """npm, where its registry answers."""
    path = client("npm")
    need(f"{npm_registry().rstrip('/')}/is-odd")
    if urlsplit(npm_registry()).scheme != "https":
        pytest.skip(f"npm asks {npm_registry()} here, which is not https")
    return path


def test_npm_views_and_installs(product: Product, npm: str) -> None:
    """GAT-10, INS-7: npm's two kinds of request, read at the registry that it is configured for, a mirror."""
    host = urlsplit(npm_registry()).hostname or ""
    words, line = held(product, "npm", host), inspected(host)
    product.environment["npm_config_cache"] = str(product.folder / "cache")
    done = product.run(*words, "--", npm, "view", "is-odd", "name")
    assert (done.returncode, done.stdout) == (0, "is-odd\n"), done.stderr
    assert net_lines(done) == {line}
    done = product.run(*words, "--", npm, "install", "--no-save", "--no-audit", "--no-fund", "is-odd")
    assert done.returncode == 0, done.stderr
    assert (product.folder / "node_modules" / "is-odd" / "package.json").exists()
    assert net_lines(done) == {line}


def test_npm_is_refused_with_the_line_that_then_works(product: Product, npm: str) -> None:
    """GAT-7, ADR-2: npm reports the 403; the line after it is exactly the option of the run that passed."""
    host = urlsplit(npm_registry()).hostname or ""
    public = is_public(host)
    product.environment["npm_config_cache"] = str(product.folder / "cache")
    done = product.run(*(["--deny", host] if public else []), "--", npm, "view", "is-odd", "name")
    assert done.returncode == 1
    assert f"403 Forbidden - GET {npm_registry()}is-odd" in done.stderr
    assert any(line.startswith(f"net: {host}:443 · refused, ") for line in net_lines(done))
    if not public:
        assert f"net: to let it through: --allow {host}:443" in net_lines(done)
