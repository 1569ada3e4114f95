"""A caller's own roots stay trusted where another host is read: by variables, by files in the home, by Java's stores.

In each task a.test is read, and b.test beside it is a tunnel whose certificate only the caller's tool knows (INS-2,
B109, B110).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.client_programs import trusting
from tests.clients import registries
from tests.clients.kit import ALLOWED, CAPTURE, PROXY, REFUSED, absent, net_lines, run_inside, shown
from tests.clients.registries import NAME
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.lab.api import Lab
    from tests.product import Product

POLICY = """
network:
  runtime:
    allow:
      - {host: a.test:443, paths: ["/**"]}
      - b.test:443
"""
PAGE = "/page"
_JAVA = (
    "class Get { public static void main(String[] words) throws Exception { for (String url : words)"
    " System.out.println(new String(new java.net.URI(url).toURL().openConnection().getInputStream().readAllBytes()));"
    " } }"
)
_FETCH = (
    "(async () => { for (const url of process.argv.slice(1)) await new Promise((done, failed) =>"
    " require('https').get(url, (answer) => answer.resume().on('end', done)).on('error', failed)); })()"
    ".catch((error) => { console.log(error.message); process.exit(1); });"
)
PAGES = [f"https://{host}{PAGE}" for host in ("a.test", "b.test")]
_POM = (
    "<project><modelVersion>4.0.0</modelVersion><parent><groupId>test</groupId><artifactId>tidetest</artifactId>"
    "<version>1.0</version><relativePath/></parent><artifactId>x</artifactId><packaging>pom</packaging></project>"
)


def _each(command: str) -> list[str]:
    return ["sh", "-ec", "".join(f"{command.replace('HOST', host)}\n" for host in ("a.test", "b.test"))]


PIP = f"{sys.executable} -m pip --no-input download -q --no-cache-dir --retries 0 -i https://HOST/simple/ -d got {NAME}"
NPM = f"npm install --no-save --registry=https://HOST/ --cache cache-HOST --prefix HOST {NAME}"
GIT = "git clone -q https://HOST/git/one.git HOST-cloned"
MAVEN = (
    "printf '<settings><mirrors><mirror><id>lab</id><mirrorOf>*</mirrorOf><url>https://HOST/maven/</url></mirror>"
    "</mirrors></settings>' >HOST.xml; mvn -B -q -s HOST.xml -Dmaven.repo.local=m2-HOST validate"
)
_PASSWORD = "-Djavax.net.ssl.trustStorePassword=changeit"
# What the caller has: variables, and files in the home; {own} is a bundle, {jks} and {p12} are stores.
CASES = {
    "curl-by-variable": (["curl", "-sSf", *PAGES], {"CURL_CA_BUNDLE": "{own}"}, {}),
    "node-by-variable": (["node", "-e", _FETCH, *PAGES], {"NODE_EXTRA_CA_CERTS": "{own}"}, {}),
    "pip-by-variable": (_each(PIP), {"PIP_CERT": "{own}", "PIP_CONFIG_FILE": os.devnull}, {}),
    "pip-by-file": (_each(PIP), {}, {".config/pip/pip.conf": "[global]\ncert = {own}\nfind-links =\n"}),
    "npm-by-variable": (_each(NPM), {"NPM_CONFIG_CAFILE": "{own}"}, {}),
    "npm-by-file": (_each(NPM), {}, {".npmrc": "cafile={own}\n"}),
    "git-by-file": (_each(GIT), {}, {".gitconfig": "[http]\n\tsslCAInfo = {own}\n"}),
    "java-by-jks": (
        ["java", "Get.java", *PAGES],
        {"JAVA_TOOL_OPTIONS": f"-Djavax.net.ssl.trustStore={{jks}} {_PASSWORD}"},
        {},
    ),
    "java-by-p12": (
        ["java", "Get.java", *PAGES],
        {"JDK_JAVA_OPTIONS": f"-Djavax.net.ssl.trustStore={{p12}} {_PASSWORD}"},
        {},
    ),
    "maven-by-its-options": (_each(MAVEN), {"MAVEN_OPTS": f"-Djavax.net.ssl.trustStore={{p12}} {_PASSWORD}"}, {}),
}


@pytest.fixture
def _sites(product: Product, lab: Lab, tmp_path: Path) -> Iterator[None]:
    plain = {name: value for name, value in trusting("-").items() if value != "-" and name != "PIP_CONFIG_FILE"}
    kept = {name: product.environment[name] for name in ("HOME", "PATH", "LANG")}
    product.environment.clear()
    product.environment.update(kept | plain)
    registries.repository(product.home)
    sites = []
    for host, address in (("a.test", ALLOWED), ("b.test", REFUSED)):
        folder = tmp_path / host
        folder.mkdir()
        site = HttpsSite(lab.listener(address, 443), [host], folder)
        site.pages[PAGE] = ("text/plain", b"page\n")
        registries.python_index(site)
        registries.npm_registry(site, f"https://{host}/")
        registries.maven_repository(site)
        site.repositories = product.home
        sites.append(site)
    with sites[0], sites[1]:
        product.environment["SSL_CERT_FILE"] = shown(product, sites[0].ca_file)
        shutil.copy(sites[1].ca_file, product.home / "own.pem")
        yield


@pytest.mark.usefixtures("_sites")
@pytest.mark.parametrize("case", list(CASES))
def test_a_callers_own_roots_stay(product: Product, case: str) -> None:
    """INS-2, B109, B110: one task reaches what is read and what only the caller's own setting makes it trust."""
    argv, variables, files = CASES[case]
    program = {"maven": "mvn"}.get(case.partition("-")[0], case.partition("-")[0])
    if program != "pip" and shutil.which(program) is None:
        absent(program)
    own = {"own": str(product.home / "own.pem")}
    for kind, name in (("JKS", "jks"), ("PKCS12", "p12")):
        own[name] = str(product.home / name)
        if any(f"{{{name}}}" in value for value in variables.values()):
            subprocess.run(
                ["keytool", "-importcert", "-noprompt", "-alias", "own", "-file", own["own"], "-keystore", own[name],
                 "-storetype", kind, "-storepass", "changeit"],
                check=True, capture_output=True,
            )  # fmt: skip
    for name, text in files.items():
        path = product.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**own))
    product.environment.update({name: value.format(**own) for name, value in variables.items()})
    (product.folder / "Get.java").write_text(_JAVA)
    (product.folder / "pom.xml").write_text(_POM)
    (product.folder / "read.yaml").write_text(POLICY)
    way, how = (CAPTURE, "captured") if argv[0] == "node" else (PROXY, "tunneled")  # Node 20 knows no proxy
    done = run_inside(product, way, argv, "--policy", "read.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in net_lines(done) if "· not connected, " not in line]  # from a race of its addresses
    assert lines == ["net: a.test:443 · inspected (policy)", f"net: b.test:443 · {how} (policy)"]
