"""What would write to a registry or a repository in another way than a publish: all of it is refused (INS-7).

Every tool's publish is in test_publishers.py. Here is what an agent tries next: other commands of the tools, methods
and headers in odd forms over HTTP/1.1 and HTTP/2, a WebSocket, the web API of a forge, one registry for another.
"""

from __future__ import annotations

import json
import shlex
import ssl
import sys
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.client_programs import trusting
from tests.clients import registries, servers
from tests.clients.kit import ALLOWED, held, net_lines, shown
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.real_registries import House
    from tests.lab.api import Lab
    from tests.product import Product

READ_ONLY = "package registries are read-only here"
PRESETS = "profile: balanced\npresets: {npm: ['npm.test:443'], pypi: ['pypi.test:443'], maven: ['maven.test:443']}\n"


# --- Methods, headers and names in odd forms

_ODD = [
    ("-X", "PUT"),
    ("-X", "put"),
    ("-X", "Post"),
    ("-X", "PATCH"),
    ("-X", "DELETE"),
    ("-X", "MKCOL"),
    ("-X", "LOCK"),
    ("-X", "QUERY"),
    ("-X", "OPTIONS"),
    ("-X", "GETX"),
    ("-d", "{}", "-H", "X-HTTP-Method-Override: GET"),
    ("-H", "X-HTTP-Method-Override: PUT"),
    ("-H", "X-Http-Method: delete"),
    ("-H", "X_Method_Override: POST"),
    ("-X", "GET", "-d", "PUT /x HTTP/1.1"),
]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_no_method_in_an_odd_form_arrives(product: Product, house: House, version: str) -> None:
    """INS-7, INS-3: whatever is not what reads is refused, in both protocols; a GET beside it arrives."""
    argv = ["curl", "-sS", version, "-o", "/dev/null", "-w", "%{http_code}\n"]
    script = "\n".join([
        "url=$1; shift",
        *(f"\"$@\" {' '.join(map(repr, words))} \"$url\"" for words in _ODD),
        '"$@" "$url"',
    ])  # fmt: skip
    done = product.run(*held(product, PRESETS), "--", "sh", "-c", script, "sh", "https://npm.test/x", *argv)
    assert done.stdout.split() == ["403"] * len(_ODD) + ["404"], done.stderr
    assert house.arrived() == [f"GET npm.test /x 404 HTTP/{'2' if version == '--http2' else '1.1'}"]


_FORMS = [
    ("-d", "a=1&_method=DELETE"),
    ("--data-urlencode", "_method=DELETE"),
    ("-F", "_method=DELETE"),
    ("-H", "Content-Type: application/json", "-d", '{"_method": "DELETE"}'),
    ("-H", "Transfer-Encoding: chunked", "-d", "_method=DELETE"),
    ("-G", "-d", "_method=DELETE"),
    ("-d", "a=1", "-H", "X-HTTP-Method-Override: DELETE"),
]
_PLAIN_FORMS = [("-d", "a=1&method=card"), ("-F", "a=_method"), ("-G", "-d", "a=_method")]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_rule_with_post_is_not_walked_around(product: Product, house: House, version: str) -> None:
    """INS-6: frameworks take a form's `_method`, or a header, for the method; forms beside them arrive."""
    argv = ["curl", "-sS", version, "-o", "/dev/null", "-w", "%{http_code}\n"]
    lines = (" ".join(map(shlex.quote, (*argv, *words, "https://npm.test/x"))) for words in (*_FORMS, *_PLAIN_FORMS))
    text = "network: {runtime: {allow: [{host: 'npm.test:443', methods: [GET, POST]}]}}\n"
    done = product.run(*held(product, text), "--", "sh", "-c", "\n".join(lines))
    passed = done.stdout.split()[len(_FORMS) :]
    assert done.stdout.split()[: len(_FORMS)] == ["403"] * len(_FORMS), done.stdout + done.stderr
    assert len(passed) == len(_PLAIN_FORMS)
    assert "403" not in passed
    assert not [one for one in house.arrived() if "_method=DELETE" in one or one.startswith("DELETE")]


def test_one_registry_is_not_asked_for_another(product: Product, house: House) -> None:
    """INS-4: the name that was asked for, SNI and Host are one host: behind one front, another's table never counts."""
    script = """
        c="curl -sS -o /dev/null -w %{http_code}\\n"
        $c -H 'Host: pypi.test' https://npm.test/x
        $c --http2 -H 'Host: pypi.test' https://npm.test/x
        $c --connect-to npm.test:443:pypi.test:443 -k https://npm.test/x || echo refused
        $c https://npm.test/x
    """
    done = product.run(*held(product, PRESETS), "--", "sh", "-c", script)
    assert done.stdout.split() == ["421", "421", "000", "refused", "404"], done.stdout + done.stderr
    assert [one.split()[:3] for one in house.arrived()] == [["GET", "npm.test", "/x"]]


# --- A WebSocket

_SOCKET = """
import os, ssl, sys
sys.excepthook = lambda kind, error, _: sys.exit(f"{kind.__name__}: {error}")
from websockets.sync.client import connect
with connect(sys.argv[1], ssl=ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])) as socket:
    socket.send("publish this")
    print(socket.recv())
"""


@pytest.mark.parametrize(
    ("policy", "passes"),
    [
        ("profile: balanced\npresets: {npm: ['a.test:443']}\n", False),
        ("network: {runtime: {allow: [{host: 'a.test:443', git: read}]}}\n", False),
        ("network: {runtime: {allow: [{host: 'a.test:443', methods: [GET]}]}}\n", True),
    ],
    ids=["registry", "git", "methods"],
)
def test_a_websocket_reads_nothing(product: Product, lab: Lab, tmp_path: Path, policy: str, *, passes: bool) -> None:
    """INS-7, INS-3: nothing behind it would be read, so a registry and `git: read` have none; a rule's GET does."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    product.environment.update(trusting(shown(product, str(tmp_path / "ca.pem"))))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.test").configure_cert(context)
    with servers.websocket(lab.listener(ALLOWED, 443), context):
        done = product.run(*held(product, policy), "--", sys.executable, "-c", _SOCKET, "wss://a.test/x")
    if passes:
        assert (done.returncode, done.stdout) == (0, "publish this\n"), done.stderr
        assert net_lines(done) == ["net: a.test:443 · inspected (policy)"]
    else:
        assert "InvalidStatus: server rejected WebSocket connection: HTTP 403" in done.stderr
        assert "· refused, " in net_lines(done)[0]


# --- The web API of a forge


@pytest.fixture
def forge(product: Product, lab: Lab, tmp_path: Path) -> Iterator[HttpsSite]:
    """A forge at https://a.test/ whose API takes everything."""
    with HttpsSite(lab.listener(ALLOWED, 443), ["a.test"], tmp_path) as made:
        product.environment.update(trusting(shown(product, made.ca_file)))
        made.takes["/"] = lambda _site, _method, _path, _body: b"taken\n"
        yield made


_API = """
    for path in api/v1/repos/acme/app/contents/git-upload-pack api/v4/projects/7/repository/files/git-upload-pack \\
                gitea/api/v1/repos/acme/app/contents/info/lfs/objects/batch api/models/a/b/branch/git-upload-pack; do
        curl -sS -w '%{http_code}\\n' -o said -d '{"content": "eA=="}' "https://a.test/$path?branch=main"
    done
    cat said
    curl -sS -d 0000 https://a.test/acme/app.git/git-upload-pack
"""


def test_a_forges_api_is_no_fetch(product: Product, forge: HttpsSite) -> None:
    """INS-7: an API that writes a file or a branch of the caller's naming is not git's fetch, whatever that name is."""
    policy = "network: {runtime: {allow: [{host: 'a.test:443', git: read}]}}\n"
    done = product.run(*held(product, policy), "--", "sh", "-c", _API)
    first, *more = done.stdout.splitlines()
    assert [first, *more[:3], more[-1]] == ["403"] * 4 + ["taken"], done.stdout
    assert "the rule allows other methods or paths only" in done.stdout
    assert forge.requests == ["POST /acme/app.git/git-upload-pack"]


# --- NuGet and Gradle, by protocol

NUGET = "api.nuget.org"
SEARCH = "azuresearch-usnc.nuget.org"
PUBLISH = "www.nuget.org"
MIRROR = "nuget.test"

# What `dotnet` asks (learn.microsoft.com/nuget/api/overview); no package has it for the machines of these tests.
_DOTNET = """
import json, sys, urllib.error, urllib.request

def ask(url, method="GET", body=None, **headers):
    headers["User-Agent"] = "NuGet .NET Core MSBuild Task/6.11.0"
    sent = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(sent) as answer:
            print(method, answer.status)
            return answer.read()
    except urllib.error.HTTPError as error:
        print(method, error.code, json.loads(error.read() or b"{}").get("reason", "") if error.code == 403 else "")
    except urllib.error.URLError as error:
        print(method, "refused" if "403" in str(error) else error)

index = json.loads(ask(sys.argv[1]))
where = {one["@type"]: one["@id"] for one in index["resources"]}
found = json.loads(ask(where["SearchQueryService"] + "?q=tidetest&prerelease=false&semVerLevel=2.0.0"))
name = found["data"][0]["id"]
ask(where["RegistrationsBaseUrl/3.6.0"] + f"{name}/index.json", Accept="application/json")
version = json.loads(ask(where["PackageBaseAddress/3.0.0"] + f"{name}/index.json"))["versions"][0]
assert ask(where["PackageBaseAddress/3.0.0"] + f"{name}/{version}/{name}.{version}.nupkg")[:2] == b"PK"
key = {"X-NuGet-ApiKey": "key", "Accept": "application/json"}
publish = where["PackagePublish/2.0.0"]
form = {"Content-Type": "multipart/form-data; boundary=b"}
ask(publish + "/", "PUT", b"--b\\r\\n\\r\\nPK\\r\\n--b--\\r\\n", **key, **form)
ask(f"{publish}/{name}/{version}", "DELETE", **key)
ask(f"{publish}/{name}/{version}", "POST", b"", **key)
ask(where["SymbolPackagePublish/4.9.0"] + "/", "PUT", b"PK", **key)
"""


def nuget_gallery(site: HttpsSite, base: str, search: str, publish: str) -> None:
    """Serve a NuGet gallery with one package, which takes whatever is pushed, deleted or listed again."""
    package = registries.wheel()  # some zip file
    site.pages |= {
        "/v3/index.json": ("application/json", json.dumps({"version": "3.0.0", "resources": [
            {"@type": "SearchQueryService", "@id": f"https://{search}/query"},
            {"@type": "RegistrationsBaseUrl/3.6.0", "@id": f"https://{base}/v3/registration5-gz-semver2/"},
            {"@type": "PackageBaseAddress/3.0.0", "@id": f"https://{base}/v3-flatcontainer/"},
            {"@type": "PackagePublish/2.0.0", "@id": f"https://{publish}/api/v2/package"},
            {"@type": "SymbolPackagePublish/4.9.0", "@id": f"https://{publish}/api/v2/symbolpackage"},
        ]}).encode()),
        "/query": ("application/json", b'{"totalHits": 1, "data": [{"id": "tidetest", "version": "1.0.0"}]}'),
        "/v3/registration5-gz-semver2/tidetest/index.json": ("application/json", b'{"count": 0, "items": []}'),
        "/v3-flatcontainer/tidetest/index.json": ("application/json", b'{"versions": ["1.0.0"]}'),
        "/v3-flatcontainer/tidetest/1.0.0/tidetest.1.0.0.nupkg": ("application/octet-stream", package),
    }  # fmt: skip
    site.takes["/api/v2/"] = lambda _site, _method, _path, _body: b""


_RESTORED = ["GET 200"] * 5


@pytest.mark.parametrize(
    ("policy", "base", "writes"),
    [
        # The gallery publishes at a host that no preset names.
        ("profile: balanced\n", NUGET, ["PUT refused", "DELETE refused", "POST refused", "PUT refused"]),
        (
            f"profile: balanced\npresets: {{nuget: ['{MIRROR}:443']}}\n", MIRROR,
            ["PUT 403 registry-read-only", "DELETE 403 registry-read-only", "POST 403 registry-read-only",
             "PUT 403 registry-read-only"],
        ),
        (
            f"profile: balanced\nregistries: tunnel\npresets: {{nuget: ['{MIRROR}:443']}}\n", MIRROR,
            ["PUT 200", "DELETE 200", "POST 200", "PUT 200"],
        ),
    ],
    ids=["gallery", "mirror", "tunnel"],
)  # fmt: skip
def test_nuget_by_protocol(
    product: Product, lab: Lab, tmp_path: Path, policy: str, base: str, writes: list[str]
) -> None:
    """INS-7: search and restore pass; push, delete, list again and symbols do not, unless registries are tunnels."""
    hosts = (NUGET, SEARCH, PUBLISH, MIRROR)
    for host in hosts:
        lab.dns.set(host, A=[ALLOWED])
    with HttpsSite(lab.listener(ALLOWED, 443), list(hosts), tmp_path) as site:
        product.environment.update(trusting(shown(product, site.ca_file)))
        nuget_gallery(site, base, *((SEARCH, PUBLISH) if base == NUGET else (MIRROR, MIRROR)))
        argv = [sys.executable, "-c", _DOTNET, f"https://{base}/v3/index.json"]
        done = product.run(*held(product, policy), "--", *argv)
        arrived = [one.split()[0] for one in site.requests]
    assert done.stdout.splitlines() == _RESTORED + writes, done.stderr
    assert arrived == [one.split()[0] for one in (*_RESTORED, *(one for one in writes if one.endswith(" 200")))]


def test_what_gradle_and_sbt_publish_is_maven_s(product: Product, house: House) -> None:
    """INS-7: the same paths by PUT, whoever says so; what they ask before is a GET or HEAD and passes."""
    script = """
        file=https://maven.test/maven/test/mine/1.0/mine-1.0
        for agent in 'Gradle/8.10 (Linux;6.1;amd64) (Debian;17.0.12;17.0.12+7)' 'sbt/1.10' 'Apache Ivy/2.5.2'; do
            for what in .module .pom .jar .jar.sha512 ../maven-metadata.xml; do
                curl -sS --path-as-is -A "$agent" -o /dev/null -w '%{http_code} ' -T /etc/hostname "$file$what"
            done
        done
        curl -sSI -A Gradle/8.10 -o /dev/null -w '%{http_code}' https://maven.test/maven/test/tidetest/1.0/tidetest-1.0.pom
    """
    done = product.run(*held(product, PRESETS), "--", "sh", "-c", script)
    assert done.stdout.split() == ["403"] * 15 + ["200"], done.stderr
    assert [one.split()[0] for one in house.arrived()] == ["HEAD"]
