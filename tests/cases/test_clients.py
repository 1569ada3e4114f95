"""Real programs behind the gate, in the lab: each is let through and refused, as its user would see it (GAT-10).

What a program sends and what it makes of a refusal is its own affair, so these tests drive the programs themselves.
Which versions that were is printed at the end of the run. The matrix of all clients is in tests/clients, real
registries are in tests/registries.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.client_programs import numbers, trusting
from tests.clients import registries
from tests.https_site import HttpsSite
from tests.product import Product
from tests.stalls import Stopwatch
from tidegate.holds import inside
from tidegate.holds.name_files import own_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.lab.api import Lab

ALLOWED, REFUSED = "1.2.3.4", "1.2.3.5"
NO_ONE = "would wait for approval; the command line asks no one"


@pytest.fixture
def product(tmp_path: Path, lab: Lab) -> Product:
    """The product as whoever runs the tests, where a.test and 2600:beef::1 exist and b.test must not be reached."""
    lab.dns.set("a.test", A=[ALLOWED])
    lab.dns.set("b.test", A=[REFUSED])
    made = Product(tmp_path, user=False)
    made.environment.update(trusting(shown(made, lab.ca_file)))
    return made


def shown(product: Product, file: str) -> str:
    """Copy a file to where a task can see it (its /tmp is its own), and return that path."""
    return shutil.copy(file, product.home)


@pytest.fixture
def nobody(lab: Lab) -> Iterator[None]:
    """Fails a test in which the refused host was looked up or connected to."""
    listeners = [lab.canary(REFUSED, port, machine=False) for port in (22, 80, 443)]
    yield
    assert [one.connections for one in listeners] == [0, 0, 0]
    assert lab.dns.count("b.test", "A") == lab.dns.count("b.test", "AAAA") == 0


def net(*lines: str) -> list[str]:
    """Return the `net:` lines of some places with what was done there."""
    return [f"net: {line}" for line in lines]


def refused(*ports: int, times: str = "") -> list[str]:
    """Return the `net:` lines of b.test refused at these ports."""
    fixes = " ".join(f"--allow b.test:{port}" for port in ports)
    return net(
        *(f"b.test:{port} · refused, {NO_ONE} (no-rule){times}" for port in ports),
        f"to let {'it' if len(ports) == 1 else 'them'} through: {fixes}",
    )


def net_lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what tidegate said, which comes last."""
    return [line for line in done.stderr.splitlines() if line.startswith("net:")]


def uncounted(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return what tidegate said without the counts: how many connections a program opens is its own affair."""
    return [line.split(" ×")[0] for line in net_lines(done)]


def own_words(done: subprocess.CompletedProcess[str]) -> str:
    """Return what the program itself wrote to standard error."""
    return "\n".join(line for line in done.stderr.splitlines() if not line.startswith("net:"))


# --- curl


@pytest.mark.parametrize(
    ("words", "rule", "line"),
    [
        (["http://a.test/"], "a.test:80", "a.test:80 · forwarded (command-line)"),
        (["https://a.test/"], "a.test:443", "a.test:443 · tunneled (command-line)"),
        (["http://A.TEST.:80/"], "a.test:80", "a.test:80 · forwarded (command-line)"),
        (["-p", "http://a.test/"], "a.test:80", "a.test:80 · tunneled (command-line)"),
        (["-0", "http://a.test/"], "a.test:80", "a.test:80 · forwarded (command-line)"),
        (["--proxy", "socks5h://127.0.0.1:3128", "http://a.test/"], "a.test:80", "a.test:80 · tunneled (command-line)"),
        (["--proxy", "socks5h://127.0.0.1:3128", "https://a.test/"], "a.test", "a.test:443 · tunneled (command-line)"),
        (["--proxy", "socks5://127.0.0.1:3128", "http://1.2.3.4/"], ALLOWED, "1.2.3.4:80 · tunneled (command-line)"),
        (["http://1.2.3.4/"], "1.2.3.4:80", "1.2.3.4:80 · forwarded (command-line)"),
        (["https://1.2.3.4/"], "1.2.3.4:443", "1.2.3.4:443 · tunneled (command-line)"),
    ],
)  # fmt: skip
def test_curl_is_let_through(
    product: Product, lab: Lab, client: Callable[[str], str], words: list[str], rule: str, line: str
) -> None:
    """GAT-1: CONNECT, absolute-form, SOCKS5 and SOCKS5h, by name in any spelling and by literal, one line each."""
    lab.origin("http", ALLOWED, 80, body="it is a.test\n")
    lab.origin("http", ALLOWED, 443, tls=["a.test", ALLOWED], body="it is a.test\n")
    done = product.run("--allow", rule, "--", client("curl"), "-sS", *words)
    assert (done.returncode, done.stdout) == (0, "it is a.test\n"), done.stderr
    assert done.stderr.splitlines() == net(line)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_curl_reaches_an_ipv6_literal_that_a_rule_names(
    product: Product, lab: Lab, client: Callable[[str], str], scheme: str
) -> None:
    """ADR-6, B26: brackets in the URL, in the rule, and in the line; without the rule the refusal names it."""
    if not lab.ipv6:
        pytest.skip("this kernel has no IPv6")
    port = {"http": 80, "https": 443}[scheme]
    origin = lab.origin("http", "2600:beef::1", port, tls=["2600:beef::1"] if scheme == "https" else None)
    url = f"{scheme}://[2600:beef::1]/"
    done = product.run("--", client("curl"), "-gsSf", url)
    assert net_lines(done) == net(
        f"[2600:beef::1]:{port} · refused, an address needs a rule that names it exactly (no-rule)",
        f"to let it through: --allow [2600:beef::1]:{port}",
    )
    assert origin.connections == 0
    done = product.run("--allow", f"[2600:beef::1]:{port}", "--", client("curl"), "-gsSf", url)
    assert done.stdout == f"hello from [2600:beef::1]:{port}\n", done.stderr


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("words", "status", "out", "err", "port"),
    [
        (["-sS", "https://b.test/"], 56, "", "curl: (56) CONNECT tunnel failed, response 403", 443),
        (
            ["-sS", "http://b.test/"],
            0,
            f"b.test:80: {NO_ONE} [no-approver; no-rule, profile balanced]; to allow it: --allow b.test:80\n",
            "",
            80,
        ),
        (["-sSf", "http://b.test/"], 22, "", "curl: (22) The requested URL returned error: 403", 80),
        (
            ["-sS", "--proxy", "socks5h://127.0.0.1:3128", "https://b.test/"],
            97,
            "",
            "curl: (97) Can't complete SOCKS5 connection to b.test. (2)",
            443,
        ),
    ],
)
def test_curl_is_refused_word_for_word(
    product: Product, client: Callable[[str], str], words: list[str], status: int, out: str, err: str, port: int
) -> None:
    """GAT-7, B73: what a user of curl reads, before any look-up; the line that helps is in the answer and after it."""
    done = product.run("--", client("curl"), *words)
    assert (done.returncode, done.stdout, own_words(done)) == (status, out, err)
    assert net_lines(done) == refused(port)


@pytest.mark.parametrize(
    ("scheme", "status", "words"),
    [("socks4a", 97, "(91), request rejected or failed"), ("https", 35, "wrong version number")],
)
def test_curl_that_speaks_another_protocol_to_the_proxy_hears_at_once(
    product: Product, client: Callable[[str], str], scheme: str, status: int, words: str
) -> None:
    """GAT-1, B31: an answer that ends curl's own wait, and not the end of the time that a head has."""
    done = product.run(
        "--allow", "a.test:80", "--", client("curl"), "-sS", "--proxy", f"{scheme}://127.0.0.1:3128", "http://a.test/"
    )
    assert (done.returncode, done.stdout) == (status, "")
    assert words in own_words(done)
    assert net_lines(done) == net("a request without a destination · refused, the request is malformed (malformed)")


def test_curl_shows_why_in_the_headers_of_a_refused_connect(product: Product, client: Callable[[str], str]) -> None:
    """GAT-7: `curl -v` shows the fields of RFC 9209, with the line that would let it through."""
    done = product.run("--", client("curl"), "-sSv", "https://b.test/")
    assert "< HTTP/1.1 403 Forbidden" in done.stderr
    assert "< Proxy-Status: tidegate; error=http_request_denied; " in done.stderr
    assert "--allow b.test:443" in own_words(done)


@pytest.fixture
def upload(product: Product) -> str:
    """A file of 2 MB in the task's folder: curl asks first (`Expect: 100-continue`) for as much."""
    (product.folder / "big").write_bytes(os.urandom(2_000_000))
    return "big"


def test_curl_uploads_what_it_asked_to_upload(
    product: Product, lab: Lab, client: Callable[[str], str], upload: str
) -> None:
    """B46: the expectation reaches the origin, its 100 reaches curl, and curl never has to give up waiting."""
    origin = lab.origin("expect", ALLOWED, 80)
    curl = [client("curl"), "-sSv", "-T", upload, "http://a.test/up"]
    done = product.run("--allow", "a.test:80", "--", *curl)
    assert (done.returncode, done.stdout) == (0, "2000000"), done.stderr
    assert b"\r\nExpect: 100-continue\r\n" in origin.heads[0]
    assert "< HTTP/1.1 100 Continue" in done.stderr
    assert "Done waiting for 100-continue" not in done.stderr


@pytest.mark.usefixtures("nobody")
def test_curl_sends_nothing_of_a_refused_upload(product: Product, client: Callable[[str], str], upload: str) -> None:
    """B46: the refusal comes instead of the 100, so the body stays where it is."""
    done = product.run("--", client("curl"), "-sSf", "-w", "%{size_upload}", "-T", upload, "http://b.test/up")
    assert (done.returncode, done.stdout) == (22, "0")
    assert net_lines(done) == refused(80)


def test_curl_reads_an_early_answer_to_its_upload(
    product: Product, lab: Lab, client: Callable[[str], str], upload: str
) -> None:
    """B47: the origin answers before it reads; curl, told not to ask first, still gets that answer."""
    lab.origin("early", ALLOWED, 80)
    curl = [client("curl"), "-sS", "-H", "Expect:", "-w", "%{http_code}", "-T", upload, "http://a.test/up"]
    done = product.run("--allow", "a.test:80", "--", *curl)
    assert done.stdout == "too much\n413", done.stderr


# --- git


def git(*words: str, cwd: Path) -> None:
    """Run git on the machine, outside the gate."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@a.test", "-c", "init.defaultBranch=main")
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *identity, *words], cwd=cwd, env=environment, check=True, capture_output=True)


@pytest.fixture
def site(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """An HTTPS server for a.test whose authority the product's programs trust."""
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test"], tmp_path) as made:
        product.environment.update(trusting(shown(product, made.ca_file)))
        yield made


def test_git_clones_and_pushes(product: Product, site: HttpsSite, client: Callable[[str], str], tmp_path: Path) -> None:
    """GAT-1, GAT-10: smart HTTP both ways through a tunnel, though the user's gitconfig names another proxy."""
    client("git")
    site.repositories = tmp_path / "repositories"
    seed = tmp_path / "seed"
    seed.mkdir()
    git("init", "-q", cwd=seed)
    (seed / "file").write_bytes(os.urandom(300_000))
    git("add", "file", cwd=seed)
    git("commit", "-qm", "first", cwd=seed)
    site.repositories.mkdir()
    git("clone", "-q", "--bare", str(seed), str(site.repositories / "one.git"), cwd=tmp_path)
    (product.home / ".gitconfig").write_text(
        "[http]\n\tproxy = http://127.0.0.1:9\n[user]\n\tname = t\n\temail = t@a.test\n"
    )
    script = """
        set -e
        git clone -q https://a.test/git/one.git
        cd one
        echo more >more; git add more; git commit -qm second
        git push -q origin HEAD
    """
    done = product.run("--allow", "a.test:443", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert (product.folder / "one" / "file").read_bytes() == (seed / "file").read_bytes()
    log = subprocess.run(
        ["git", f"--git-dir={site.repositories}/one.git", "-c", "safe.directory=*", "log", "--format=%s"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert log.stdout.split() == ["second", "first"]
    assert uncounted(done) == net("a.test:443 · tunneled (command-line)")


@pytest.mark.usefixtures("nobody")
def test_git_is_refused(product: Product, client: Callable[[str], str]) -> None:
    """GAT-7, B62: git says that the tunnel failed, asks nobody for a password, and leaves no folder."""
    done = product.run("--", client("git"), "clone", "https://b.test/x.git")
    assert done.returncode == 128
    assert own_words(done).splitlines() == [
        "Cloning into 'x'...",
        "fatal: unable to access 'https://b.test/x.git/': CONNECT tunnel failed, response 403",
    ]
    assert net_lines(done) == refused(443)
    assert not (product.folder / "x").exists()


# --- pip and npm, against registries made for the purpose


@pytest.fixture
def index(site: HttpsSite) -> HttpsSite:
    """A Python index at https://a.test/simple/ with one package."""
    registries.python_index(site)
    return site


PIP = [sys.executable, "-m", "pip", "--no-input", "-q"]


@pytest.mark.parametrize("verb", ["download", "install"])
def test_pip_downloads_and_installs(
    product: Product, index: HttpsSite, client: Callable[[str], str], verb: str
) -> None:
    """B61, B139: pip's CONNECT is HTTP/1.0 without Host; a proxy line in pip.conf does not lead it elsewhere."""
    client("pip")
    (product.home / "pip.conf").write_text("[global]\nproxy = http://127.0.0.1:9\n")
    product.environment["PIP_CONFIG_FILE"] = str(product.home / "pip.conf")
    where = {"download": "-d", "install": "--target"}[verb]
    done = product.run(
        "--allow", "a.test:443", "--", *PIP, verb, "--no-cache-dir", "-i", "https://a.test/simple/", where, "got",
        "tidetest",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    file = {"download": "tidetest-1.0-py3-none-any.whl", "install": "tidetest.py"}[verb]
    assert (product.folder / "got" / file).exists()
    assert index.requests == ["GET /simple/tidetest/", "GET /files/tidetest-1.0-py3-none-any.whl"]
    assert uncounted(done) == net("a.test:443 · tunneled (command-line)")


@pytest.mark.usefixtures("nobody")
def test_pip_is_refused(product: Product, client: Callable[[str], str]) -> None:
    """GAT-7, B40: pip says what the proxy said; its retries are one line with a count, not one each."""
    client("pip")
    done = product.run(
        "--", *PIP, "download", "--no-cache-dir", "--retries", "1", "-i", "https://b.test/simple/", "tidetest"
    )
    assert done.returncode == 1
    assert "Tunnel connection failed: 403 Forbidden" in own_words(done)
    assert net_lines(done) == refused(443, times=" ×2")


@pytest.fixture
def npm(product: Product, site: HttpsSite, client: Callable[[str], str]) -> str:
    """npm, with a registry at https://a.test/ that has one package, and a user's .npmrc that names another proxy."""
    path = client("npm")
    registries.npm_registry(site)
    (product.home / ".npmrc").write_text("proxy=http://127.0.0.1:9\nhttps-proxy=http://127.0.0.1:9\n")
    product.environment["npm_config_registry"] = "https://a.test/"
    return path


def test_npm_views_and_installs(product: Product, npm: str) -> None:
    """B139: metadata and tarball both go through the gate, over the proxy lines of an .npmrc."""
    done = product.run("--allow", "a.test:443", "--", npm, "view", "tidetest", "version")
    assert (done.returncode, done.stdout) == (0, "1.0.0\n"), done.stderr
    assert net_lines(done) == net("a.test:443 · tunneled (command-line)")
    done = product.run("--allow", "a.test:443", "--", npm, "install", "--no-save", "tidetest")
    assert done.returncode == 0, done.stderr
    assert (product.folder / "node_modules" / "tidetest" / "package.json").exists()
    assert uncounted(done) == net("a.test:443 · tunneled (command-line)")


@pytest.mark.usefixtures("nobody")
def test_npm_is_refused(product: Product, npm: str) -> None:
    """GAT-7, B40: npm takes 403 as an answer, says so, and does not try again."""
    product.environment["npm_config_registry"] = "https://b.test/"
    done = product.run("--", npm, "view", "tidetest", "version")
    assert done.returncode == 1
    assert "403 Forbidden - GET https://b.test/tidetest" in own_words(done)
    assert net_lines(done) == refused(443)


# --- Node

FETCH = """
    const began = Date.now();
    fetch(process.argv[1]).then(
        async (answer) => console.log(answer.status, (await answer.text()).trim()),
        (error) => console.log('failed', error.cause?.code ?? error.cause?.message ?? error.message),
    ).then(() => console.log(Date.now() - began < 3000));
"""


def knows_the_environment(node: str) -> bool:
    """Whether this Node's fetch follows the proxy variables under NODE_USE_ENV_PROXY=1."""
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return (22, 21) <= numbers(version)[:2] < (23, 0) or numbers(version) >= (24,)


@pytest.mark.usefixtures("nobody")
def test_fetch_of_node_either_uses_the_gate_or_fails_at_once(
    product: Product, lab: Lab, client: Callable[[str], str]
) -> None:
    """B130: from 22.21 and 24 on fetch goes through the gate; an older one is captured, or says at once it cannot."""
    node = client("node")
    lab.origin("http", ALLOWED, 443, tls="a.test", body="it is a.test\n")
    let_through = product.run("--allow", "a.test:443", "--", node, "-e", FETCH, "https://a.test/")
    kept_out = product.run("--", node, "-e", FETCH, "https://b.test/")
    if knows_the_environment(node):
        assert let_through.stdout.splitlines() == ["200 it is a.test", "true"], let_through.stderr
        assert net_lines(let_through) == net("a.test:443 · tunneled (command-line)")
        assert kept_out.stdout.startswith("failed ")
        assert net_lines(kept_out) == refused(443)
        return
    assert let_through.stdout.splitlines() == ["200 it is a.test", "true"], let_through.stderr
    assert net_lines(let_through) == net("a.test:443 · captured (command-line)")
    assert kept_out.stdout.startswith("failed ")
    assert net_lines(kept_out) == refused(443)
    queries = list(lab.dns.queries)
    for host in ("a.test", "b.test"):
        done = product.run("--capture", "off", "--allow", "a.test:443", "--", node, "-e", FETCH, f"https://{host}/")
        assert done.stdout.splitlines() in (["failed EAI_AGAIN", "true"], ["failed ENOTFOUND", "true"]), done.stderr
    assert lab.dns.queries == queries


# --- Python

PYTHON = {
    "urllib": "import urllib.request as u\nprint(u.urlopen(sys.argv[1]).read().decode(), end='')",
    "requests": "import requests\nr = requests.get(sys.argv[1])\nr.raise_for_status()\nprint(r.text, end='')",
    "httpx": "import httpx, os, ssl\nc = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])\n"
    "r = httpx.get(sys.argv[1], verify=c)\nr.raise_for_status()\nprint(r.text, end='')",
}


def python(library: str, url: str) -> list[str]:
    """Return the command that gets a URL with a library and prints the last line of what went wrong."""
    code = f"import sys\nsys.excepthook = lambda kind, e, _: sys.exit(f'{{kind.__name__}}: {{e}}')\n{PYTHON[library]}"
    return [sys.executable, "-c", code, url]


@pytest.mark.parametrize("library", list(PYTHON))
@pytest.mark.parametrize(("scheme", "how"), [("http", "forwarded"), ("https", "tunneled")])
def test_python_is_let_through(
    product: Product, lab: Lab, client: Callable[[str], str], library: str, scheme: str, how: str
) -> None:
    """GAT-10, B133: libraries take NO_PROXY as we write it; the caller's own `*` opens nothing and stops nothing."""
    client("python" if library == "urllib" else library)
    port = {"http": 80, "https": 443}[scheme]
    lab.origin("http", ALLOWED, port, tls="a.test" if scheme == "https" else None, body="it is a.test\n")
    product.environment |= {"NO_PROXY": "*", "no_proxy": "*"}
    done = product.run("--allow", "a.test", "--", *python(library, f"{scheme}://a.test/"))
    assert (done.returncode, done.stdout) == (0, "it is a.test\n"), done.stderr
    assert net_lines(done) == net(f"a.test:{port} · {how} (command-line)")


# --- Java

JAVA = """
    import java.net.*;
    import java.net.http.*;

    class Get {
        public static void main(String[] urls) {
            for (String url : urls) {
                try {
                    System.out.println(((HttpURLConnection) new URI(url).toURL().openConnection()).getResponseCode());
                } catch (Exception e) {
                    System.out.println(e);
                }
                try {
                    HttpRequest request = HttpRequest.newBuilder(new URI(url)).build();
                    System.out.println(
                        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
                } catch (Exception e) {
                    System.out.println(e);
                }
            }
        }
    }
"""


@pytest.mark.slow
@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize("capture", ["off", "on"])
def test_java_uses_the_gate(product: Product, lab: Lab, client: Callable[[str], str], capture: str) -> None:
    """B131: both of Java's clients, though neither reads a proxy variable; JAVA_TOOL_OPTIONS of the user's is kept."""
    java = client("java")
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler" not in modules:
        pytest.skip("this Java cannot run a source file (it has no compiler)")
    lab.origin("http", ALLOWED, 80)
    lab.origin("http", ALLOWED, 443, tls="a.test")
    (product.folder / "Get.java").write_text(textwrap.dedent(JAVA))
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "lab", "-file", lab.ca_file, "-keystore", "trust.p12",
         "-storepass", "changeit"],
        cwd=product.folder, check=True, capture_output=True,
    )  # fmt: skip
    product.environment["JAVA_TOOL_OPTIONS"] = (
        f"-Djavax.net.ssl.trustStore={product.folder}/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"
    )
    urls = [f"{scheme}://{host}/" for host in ("a.test", "b.test") for scheme in ("http", "https")]
    done = product.run("--capture", capture, "--allow", "a.test", "--", java, "Get.java", *urls)
    if capture == "on":
        alert = "javax.net.ssl.SSLHandshakeException: Received fatal alert: access_denied"
        assert done.stdout.splitlines() == [*["200"] * 4, "403", "403", alert, alert], done.stderr
        assert sorted(net_lines(done)) == sorted(
            [
                *net("a.test:80 · captured (command-line) ×2", "a.test:443 · captured (command-line) ×2"),
                *refused(80, 443, times=" ×2"),
            ]
        )
        return
    assert done.stdout.splitlines() == [
        "200", "200", "200", "200", "403", "403",
        'java.io.IOException: Unable to tunnel through proxy. Proxy returns "HTTP/1.1 403 Forbidden"',
        "java.io.IOException: Tunnel failed, got: 403",
    ], done.stderr  # fmt: skip
    assert sorted(net_lines(done)) == sorted(
        [
            *net("a.test:80 · forwarded (command-line) ×2", "a.test:443 · tunneled (command-line) ×2"),
            *refused(80, 443, times=" ×2"),
        ]
    )


# --- cargo


def test_cargo_uses_the_gate(product: Product, site: HttpsSite, client: Callable[[str], str], lab: Lab) -> None:
    """GAT-10, B139: a sparse registry through the gate, over the proxy line of cargo's own config; and refused."""
    cargo = client("cargo")
    product.environment |= {
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup")),
        "CARGO_NET_RETRY": "0",
    }
    registries.crates(site)
    done = {}
    for registry in "ab":
        folder = product.folder / registry
        (folder / "src").mkdir(parents=True)
        (folder / "src" / "lib.rs").write_text("")
        product.environment["CARGO_HOME"] = str(folder / "cargo")  # in the workspace: it is written to
        (folder / "cargo").mkdir()
        (folder / "cargo" / "config.toml").write_text(
            '[http]\nproxy = "127.0.0.1:9"\n[registries]\na = { index = "sparse+https://a.test/index/" }\n'
            'b = { index = "sparse+https://b.test/index/" }\n'
        )
        (folder / "Cargo.toml").write_text(
            '[package]\nname = "x"\nversion = "1.0.0"\n[dependencies]\n'
            f'tidetest = {{ version = "1", registry = "{registry}" }}\n'
        )
        done[registry] = product.run("--allow", "a.test:443", "--", cargo, "fetch", cwd=folder)
    assert done["a"].returncode == 0, done["a"].stderr
    assert "GET /crates/tidetest/1.0.0/download" in site.requests
    assert uncounted(done["a"]) == net("a.test:443 · tunneled (command-line)")
    assert done["b"].returncode == 101
    assert "CONNECT tunnel failed, response 403" in own_words(done["b"])
    assert net_lines(done["b"]) == refused(443)
    assert lab.dns.count("b.test", "A") == 0


# --- ssh


@pytest.mark.usefixtures("nobody")
@pytest.mark.parametrize(
    ("capture", "host", "says"),
    [
        ("off", "b.test", "ssh: Could not resolve hostname b.test: "),
        ("off", "1.2.3.5", "port 22: Network is unreachable"),
        ("on", "b.test", "to allow it: --allow b.test:22"),
        ("on", "1.2.3.5", "to allow it: --allow 1.2.3.5:22"),
    ],
)
def test_ssh_fails_at_once(product: Product, client: Callable[[str], str], capture: str, host: str, says: str) -> None:
    """B71, B88, B136: ssh knows no proxy: told so in its own protocol, or by its own words, at once."""
    with Stopwatch() as watch:
        done = product.run("--capture", capture, "--", client("ssh"), "-o", "BatchMode=yes", f"git@{host}")
        took = watch.seconds
    assert done.returncode == 255
    assert says in own_words(done)
    assert took < 10  # a resolver's or a connection's patience would be longer


@pytest.mark.usefixtures("nobody")
def test_ssh_through_a_proxy_command(product: Product, lab: Lab, client: Callable[[str], str]) -> None:
    """B136, GAT-9: a CONNECT to port 22 by a rule for it: the server speaks first; without the rule, ssh ends."""
    ssh = client("ssh")
    # It says what it is, hears what ssh is, and ends.
    steps = [["send", "SSH-2.0-of-the-lab\r\n"], ["until", "\n"], ["shut"], ["drain"]]
    lab.origin("script", ALLOWED, 22, steps=steps)
    (product.folder / "connect.py").write_text(
        textwrap.dedent("""
            import os, socket, sys, threading
            sock = socket.create_connection(("127.0.0.1", 3128))
            sock.sendall(f"CONNECT {sys.argv[1]}:{sys.argv[2]} HTTP/1.0\\r\\n\\r\\n".encode())
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"):
                head += sock.recv(1) or sys.exit("closed")
            if not head.startswith(b"HTTP/1.1 200"):
                sys.exit(head.split(b"\\r\\n")[0].decode())
            def inward():
                while data := sock.recv(65536):
                    os.write(1, data)
                os._exit(0)
            threading.Thread(target=inward).start()
            while data := os.read(0, 65536):
                sock.sendall(data)
        """)
    )
    words = ["-v", "-o", "BatchMode=yes", "-o", f"ProxyCommand={sys.executable} connect.py %h %p"]
    done = product.run("--allow", "a.test:22", "--", ssh, *words, "git@a.test")
    assert "remote software version of-the-lab" in own_words(done), done.stderr
    assert net_lines(done)[0].startswith("net: a.test:22 · tunneled")
    done = product.run("--", ssh, *words, "git@b.test")
    assert done.returncode == 255
    assert "HTTP/1.1 403 Forbidden" in own_words(done)
    assert net_lines(done) == refused(22)


# --- the environment as a user sees it

PASSWORD = "opensesame"


@pytest.mark.parametrize("shell", ["env | grep -i proxy", "tr '\\0' '\\n' </proc/self/environ | grep -i proxy"])
def test_no_credential_and_no_other_proxy_is_inside(product: Product, lab: Lab, shell: str) -> None:
    """B100, B137: the only address in a proxy variable is the gate's; nothing of the caller's is left in any name."""
    lab.http_proxy()
    product.environment |= {
        "HTTP_PROXY": f"http://bob:{PASSWORD}@1.2.3.80:3128",
        "https_proxy": f"http://bob:{PASSWORD}@1.2.3.80:3128",
        "npm_config_https_proxy": f"http://bob:{PASSWORD}@1.2.3.80:3128",
        "FTP_PROXY": f"http://bob:{PASSWORD}@1.2.3.80:3128",
        "NO_PROXY": "*",
    }
    done = product.run("--", "sh", "-c", f"{shell}; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert "1.2.3.80" not in done.stdout
    values = {line.partition("=")[2] for line in done.stdout.splitlines() if "proxy=" in line.lower()}
    own = ",".join(("localhost,127.0.0.1,::1", inside.OWN4, inside.OWN6, *own_names(os.uname().nodename)))
    assert values == {"http://127.0.0.1:3128", own, "1"}  # the last is NODE_USE_ENV_PROXY
    assert {"HTTP_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128"} <= set(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("variables", "kind"),
    [
        ({"HTTP_PROXY": "http://{}1.2.3.80:3128", "HTTPS_PROXY": "http://{}1.2.3.80:3128"}, "http"),
        ({"http_proxy": "http://{}1.2.3.80:3128", "https_proxy": "http://{}1.2.3.80:3128"}, "http"),
        ({"ALL_PROXY": "http://{}proxy.test:3128"}, "http"),
        ({"ALL_PROXY": "socks5://{}1.2.3.81:1080"}, "socks5"),
        ({"all_proxy": "socks5h://{}1.2.3.81:1080"}, "socks5"),
    ],
)
@pytest.mark.parametrize("credentials", ["", f"bob:{PASSWORD}@"])
def test_the_gate_goes_out_through_the_callers_proxy(
    product: Product,
    lab: Lab,
    client: Callable[[str], str],
    variables: dict[str, str],
    kind: str,
    credentials: str,
) -> None:
    """GAT-8: either case, with credentials that only the proxy sees; no direct connection, nothing in the record."""
    curl = client("curl")
    lab.dns.set("proxy.test", A=["1.2.3.80"])
    options = {"user": "bob", "password": PASSWORD} if credentials else {}
    proxy = (lab.http_proxy if kind == "http" else lab.socks5_proxy)(**options)
    plain = lab.origin("http", ALLOWED, 80, body="plain\n")
    tls = lab.origin("http", ALLOWED, 443, tls="a.test", body="tls\n")
    product.environment |= {name: value.format(credentials) for name, value in variables.items()}
    done = product.run("--allow", "a.test", "--log", "n.jsonl", "--", curl, "-sSv", "http://a.test/", "https://a.test/")
    assert (done.returncode, done.stdout) == (0, "plain\ntls\n"), done.stderr
    assert proxy.connections == plain.connections + tls.connections == 2
    assert PASSWORD not in done.stderr
    assert PASSWORD not in (product.folder / "n.jsonl").read_text()
    if kind == "socks5":  # the lab's HTTP proxy passes on what it was sent
        assert b"Proxy-" not in plain.received


def test_a_host_in_the_callers_no_proxy_goes_direct_from_the_gate(
    product: Product, lab: Lab, client: Callable[[str], str]
) -> None:
    """GAT-8, B133: the caller's NO_PROXY is the gate's business and not the task's."""
    curl = client("curl")
    proxy = lab.http_proxy()
    lab.origin("http", ALLOWED, 80, body="plain\n")
    product.environment |= {"http_proxy": "http://1.2.3.80:3128", "no_proxy": "a.test"}
    done = product.run("--allow", "a.test", "--", curl, "-sS", "http://a.test/")
    assert (done.returncode, done.stdout) == (0, "plain\n"), done.stderr
    assert proxy.connections == 0


@pytest.mark.usefixtures("nobody")
def test_a_refused_host_never_reaches_the_callers_proxy(
    product: Product, lab: Lab, client: Callable[[str], str]
) -> None:
    """GAT-8, B73: the verdict comes before the upstream is spoken to."""
    curl = client("curl")
    proxy = lab.http_proxy()
    product.environment |= {"http_proxy": "http://1.2.3.80:3128", "https_proxy": "http://1.2.3.80:3128"}
    done = product.run("--", curl, "-sS", "-o", "/dev/null", "http://b.test/", "-o", "/dev/null", "https://b.test/")
    assert net_lines(done) == refused(80, 443)
    assert proxy.connections == 0


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_a_wrong_password_of_the_callers_proxy_is_told_apart(
    product: Product, lab: Lab, client: Callable[[str], str], kind: str
) -> None:
    """GAT-8, GAT-7: that the upstream would not have us is not the task's 407, and shows no credential."""
    curl = client("curl")
    if kind == "http":
        lab.http_proxy(user="bob", password="other")
        product.environment["https_proxy"] = f"http://bob:{PASSWORD}@1.2.3.80:3128"
    else:
        lab.socks5_proxy(user="bob", password="other")
        product.environment["https_proxy"] = f"socks5h://bob:{PASSWORD}@1.2.3.81:1080"
    done = product.run("--allow", "a.test", "--", curl, "-sSv", "https://a.test/")
    assert "curl: (56) CONNECT tunnel failed, response 502" in done.stderr
    (line,) = net_lines(done)
    assert "a.test:443" in line
    assert "upstream" in line
    assert PASSWORD not in done.stderr
