"""Rules with methods and paths in every hold that has a gate: what is read, and whom the task trusts (INS-1, INS-2)."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.clients.kit import ALLOWED, REFUSED
from tests.engines import of_one_worker
from tests.holds.inside_tls import DISTRIBUTIONS, PLACES, Inside
from tests.product import PYTHON

if TYPE_CHECKING:
    from tests.lab.api import Lab

READ = "network: {runtime: {allow: [{host: 'a.test:443', methods: [GET], paths: ['/acme/**']}, 'b.test:443']}}\n"
BARE = 'env -i PATH="$PATH" https_proxy="$https_proxy" curl -sS https://a.test/acme/bare\n'
CURL = "curl -sS https://a.test/acme/x https://a.test/other https://b.test/\n"
FETCH = "import urllib.request as u; print(u.urlopen('https://a.test/acme/python', timeout=60).read().decode(), end='')"


@pytest.mark.parametrize("place", PLACES)
def test_what_is_read_is_trusted_in_every_hold(place: str, request: pytest.FixtureRequest, lab: Lab) -> None:
    """INS-1, INS-2, INS-6, B109: path by path, by variables and by the distribution's bundle; tunnels stay as they are.

    The bundle cannot be written, and what the task trusted before it still trusts.
    """
    origin = lab.origin("http", ALLOWED, 443, tls="a.test", body="read\n")
    lab.origin("http", REFUSED, 443, tls="b.test", body="not read\n")
    with Inside(place, request, lab) as inside:
        inside.write("read.yaml", READ)
        kept = (
            '(echo x >> "$SSL_CERT_FILE") 2>/dev/null || echo kept; rm -f "$SSL_CERT_FILE" 2>/dev/null || echo there\n'
        )
        done = inside.run("--policy", "read.yaml", script=CURL + (BARE if inside.bound else "") + kept)
        first, *rest = done.stdout.splitlines()
        assert first == "read", (done.stdout, done.stderr)
        assert "[method-not-allowed; rule 'a.test:443'" in rest[0]
        assert rest[1:] == ["not read", *(["read"] if inside.bound else []), "kept", "there"], done.stderr
        assert done.returncode == 0, done.stderr
        lines = {line.split(" ×")[0] for line in done.stderr.splitlines() if line.startswith("net:")}
        assert {
            "net: a.test:443 · inspected (policy)",
            "net: a.test:443 · refused, the rule allows other methods or paths only (policy)",
            "net: b.test:443 · tunneled (policy)",
        } <= lines
        assert origin.requests == (2 if inside.bound else 1)


@pytest.mark.parametrize("place", [one for one in PLACES if isinstance(one, str) or " " not in str(one.values[0])])
def test_python_is_read_too(place: str, request: pytest.FixtureRequest, lab: Lab) -> None:
    """INS-2: a program that asks OpenSSL for its roots, by capture where there is one."""
    lab.origin("http", ALLOWED, 443, tls="a.test", body="read\n")
    with Inside(place, request, lab) as inside:
        inside.write("read.yaml", READ)
        proxies = "" if inside.hold == "landlock" else "env -u https_proxy -u HTTPS_PROXY -u all_proxy -u ALL_PROXY "
        done = inside.run("--policy", "read.yaml", script=f'{proxies}{PYTHON} -c "{FETCH}"')
        assert done.stdout == "read\n", done.stderr


JAVA = """
public class Get { public static void main(String[] a) throws Exception {
  System.out.print(new String(new java.net.URL("https://a.test/acme/java").openStream().readAllBytes()));
} }
"""


@pytest.mark.skipif(shutil.which("java") is None, reason="java is not installed (scripts/setup installs it as root)")
@pytest.mark.parametrize(
    "place", [one for one in PLACES if one == "uid" or getattr(one, "values", [""])[0] == "docker"]
)
def test_java_reads_its_store(place: str, request: pytest.FixtureRequest, lab: Lab) -> None:
    """INS-2: a JVM, which knows only its own kind of store, and is told of it by a variable."""
    lab.origin("http", ALLOWED, 443, tls="a.test", body="read\n")
    with Inside(place, request, lab) as inside:
        inside.write("read.yaml", READ)
        inside.write("Get.java", JAVA)
        named = [name for name in os.listdir("/etc") if name == "alternatives" or name.startswith("java")]
        settings = [f"/etc/{name}" for name in named]  # Debian's /usr leads there
        shares = [word for path in settings for word in ("--share", f"{path}:ro")]
        done = inside.run("--policy", "read.yaml", *shares, script="java -XX:TieredStopAtLevel=1 Get.java")
        assert done.stdout == "read\n", done.stderr


ENGINES = [pytest.param(one, marks=(pytest.mark.slow, *of_one_worker(one))) for one in ("docker", "podman")]


@pytest.mark.parametrize("kind", sorted(DISTRIBUTIONS))
@pytest.mark.parametrize("engine", ENGINES)
def test_the_bundle_of_an_image(engine: str, kind: str, request: pytest.FixtureRequest, lab: Lab) -> None:
    """INS-2, B109: the image's own roots, the caller's and the authority; over each place that the image has.

    An image without a bundle gets this machine's roots, and no file where it had none. The image is not changed.
    """
    places = [f"/{name}" for name in DISTRIBUTIONS[kind]]
    others = ["/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem"]
    with Inside(engine, request, lab, image=kind) as inside:
        inside.write("read.yaml", READ)
        look = 'cmp "$SSL_CERT_FILE" {0} && echo same; echo x >> {0} || echo kept\n'
        looked = "".join(look.format(path) for path in places)
        script = f'grep -c BEGIN "$SSL_CERT_FILE"\n{looked}ls {" ".join(others)}; ls -l /run/tidegate | grep -c ca\n'
        before = inside.engine.image(inside.image)["Id"]
        done = inside.run("--policy", "read.yaml", script=script)
        count, *rest = done.stdout.split()
        assert rest == [*["same", "kept"] * len(places), "2"], (done.stdout, done.stderr)
        assert int(count) == 3 if places else int(count) > 50, count
        assert inside.engine.image(inside.image)["Id"] == before
        again = inside.run("--policy", "read.yaml", script=script)  # from what the first run kept of the image
        assert again.stdout == done.stdout, again.stderr
        assert len(list(inside.product.state.glob("images/*"))) == 1
        inside.write("plain.yaml", "network: {runtime: {allow: ['a.test:443']}}\n")
        count = f"grep -c BEGIN {' '.join(places)} /dev/null; echo $PIP_CERT"
        plain = inside.run("--policy", "plain.yaml", script=count)
        assert all(line.endswith((":1", ":0")) for line in plain.stdout.split() if ":" in line), plain.stdout
        assert plain.stdout.endswith("\n\n"), plain.stdout
