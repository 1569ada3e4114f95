"""The package managers: one row each, what they fetch from a registry of the lab, and what they print when refused.

Each asks https://HOST/ only (registries.py); what they do with the real ones is in tests/registries.
"""

from __future__ import annotations

import glob
import os
import sys

from tests.clients.kit import MODULES, TOOLS, Client, Place, Words, refused
from tests.clients.registries import MODULE, NAME
from tests.clients.table import BUN

_PIP = [sys.executable, "-m", "pip", "--no-input"]
POETRY = os.path.join(TOOLS, "poetry", "bin", "poetry")
YARN1 = os.path.join(MODULES, "yarn", "bin", "yarn.js")
YARN4 = os.path.join(MODULES, "@yarnpkg", "cli-dist", "bin", "yarn.js")
PNPM = next(iter(glob.glob(f"{MODULES}/@pnpm/exe.linux-*/pnpm")), "pnpm")
UV = os.path.join(os.path.dirname(sys.executable), "uv")


def _pip(p: Place) -> list[str]:
    return [*_PIP, "download", "--no-cache-dir", "--retries", "1", "-i", f"{p.url}simple/", "-d", "got", NAME]


def _uv(p: Place) -> list[str]:
    return ["env", "UV_HTTP_RETRIES=0", UV, "--no-cache",
            "--no-config", "pip", "install", "-q", "--python", sys.executable, "--target", "got",
            "--index-url", f"{p.url}simple/", NAME]  # fmt: skip


def _poetry(p: Place) -> list[str]:
    p.write(
        "pyproject.toml",
        f'[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["{NAME}"]\n'
        f'[[tool.poetry.source]]\nname = "lab"\nurl = "{p.url}simple/"\npriority = "primary"\n',
    )
    return [POETRY, "lock", "--no-interaction", "--no-ansi", "--no-cache"]


def _npm(p: Place) -> list[str]:
    return ["npm", "install", "--no-save", f"--registry={p.url}", NAME]


def _yarn1(p: Place) -> list[str]:
    p.write("package.json", '{"private": true}')
    return ["node", YARN1, "add", "--no-lockfile", "--non-interactive", f"--registry={p.url}", NAME]


def _yarn4(p: Place) -> list[str]:
    p.write("package.json", '{"private": true}')
    p.write("yarn.lock", "")
    p.write(
        ".yarnrc.yml",
        f"npmRegistryServer: '{p.url}'\nnodeLinker: node-modules\n"
        + (f"httpsCaFilePath: '{p.ca_file}'\n" if p.ca_file else "")
        + "enableTelemetry: false\nhttpRetry: 0\nenableGlobalCache: false\nnpmMinimalAgeGate: 0\n",
    )
    # A task of root's writes to its workspace and to caches only, and this is none of them.
    return ["env", f"YARN_GLOBAL_FOLDER={p.folder}/yarn", "node", YARN4, "add", NAME]


def _pnpm(p: Place) -> list[str]:
    p.write("package.json", '{"private": true}')
    p.write("pnpm-workspace.yaml", "fetchRetries: 0\n")  # else it tries again for 70 s
    return [PNPM, "add", f"--registry={p.url}", NAME]


def _bun(p: Place) -> list[str]:
    p.write("package.json", '{"private": true}')
    trust = [f"--cafile={p.ca_file}"] if p.ca_file else []
    return [BUN, "add", "--no-cache", *trust, f"--registry={p.url}", NAME]


def _cargo(p: Place) -> list[str]:
    p.write("src/lib.rs", "")
    p.write(
        "Cargo.toml",
        f'[package]\nname = "x"\nversion = "1.0.0"\n[dependencies]\n{NAME} = {{ version = "1", registry = "lab" }}\n',
    )
    p.write(".cargo/config.toml", f'[registries]\nlab = {{ index = "sparse+{p.url}index/" }}\n')
    rustup = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    return ["env", f"CARGO_HOME={p.folder}/cargo", "CARGO_NET_RETRY=0", f"RUSTUP_HOME={rustup}", "cargo", "fetch"]


def _go(p: Place) -> list[str]:
    p.write("go.mod", "module x\n")
    return ["env", f"GOPROXY={p.url}go", "GONOSUMDB=*", "GOFLAGS=-mod=mod", f"GOPATH={p.folder}/go",
            "GOTOOLCHAIN=local", f"GOCACHE={p.folder}/cache", "go", "mod", "download", f"{MODULE}@v1.0.0"]  # fmt: skip


def _maven(p: Place) -> list[str]:
    p.write(
        "pom.xml",
        "<project><modelVersion>4.0.0</modelVersion><parent><groupId>test</groupId>"
        f"<artifactId>{NAME}</artifactId><version>1.0</version><relativePath/></parent><artifactId>x</artifactId>"
        "<packaging>pom</packaging></project>",
    )
    settings = p.write(
        "settings.xml",
        "<settings><mirrors><mirror><id>lab</id><mirrorOf>*</mirrorOf>"
        f"<url>{p.url}maven/</url></mirror></mirrors></settings>",
    )
    trust = f"-Djavax.net.ssl.trustStore={p.home}/trust.p12 -Djavax.net.ssl.trustStorePassword=changeit"
    return [
        "env",
        f"MAVEN_OPTS={trust if p.ca_file else ''}",
        "mvn",
        "-B",
        "-q",
        "-s",
        settings,
        f"-Dmaven.repo.local={p.folder}/m2",
        "validate",
    ]


def _gem(p: Place) -> list[str]:
    # Likewise.
    return [
        "env",
        f"XDG_DATA_HOME={p.folder}/data",
        "gem",
        "fetch",
        "-q",
        "--clear-sources",
        "--source",
        f"{p.url}gems/",
        NAME,
    ]


_WHEEL = f"/files/{NAME}-1.0-py3-none-any.whl"
_TARBALL = f"/{NAME}/-/{NAME}-1.0.0.tgz"
_OPENSSL = "'[SSL: TLSV1_ALERT_ACCESS_DENIED] tlsv1 alert access denied (_ssl.c:…)'"
_NODE_ALERT = "…:error:0A000419:SSL routines:ssl3_read_bytes:tlsv1 alert access denied:…:SSL alert number 49"
_NOTHING = f"ERROR: No matching distribution found for {NAME}"
_RETRY = "WARNING: Retrying (Retry(…)) after connection broken by "
_PROXY_ERROR = "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403 Forbidden'))"
_CURL_ALERT = "TLS connect error: error:0A000419:SSL routines::tlsv1 alert access denied"
_GEM_ALERT = "SSL_connect returned=1 errno=0 peeraddr=…:443 state=error: tlsv1 alert access denied"
_POM = f"Could not transfer artifact test:{NAME}:pom:1.0 from/to lab (https://{{host}}/maven/): "
_POM_URL = f"https://{{host}}/maven/test/{NAME}/1.0/{NAME}-1.0.pom"
_BY_MAVEN = "and 'parent.relativePath' points at no local POM @ line 1, column 52"

PACKAGE_MANAGERS: tuple[Client, ...] = (
    Client(
        "pip", (*_PIP, "--version"), "23.2", _pip, _WHEEL,
        refused(
            tunnel=Words(1, (
                f"{_RETRY}'{_PROXY_ERROR}': /simple/{NAME}/",
                _NOTHING,
            )),
            alert=Words(1, (f"{_RETRY}'SSLError(SSLError(1, {_OPENSSL}))': /simple/{NAME}/", _NOTHING)),
        ),
    ),
    Client(
        "uv", (UV, "--version"), "0.13", _uv, _WHEEL,
        refused(
            tunnel=Words(2, (f"error: Failed to fetch: https://{{host}}/simple/{NAME}/",
                             "  cause: tunnel error: unsuccessful")),
            alert=Words(2, (f"error: Failed to fetch: https://{{host}}/simple/{NAME}/",
                            "  cause: received fatal alert: AccessDenied")),
        ),
    ),
    Client(
        "poetry", (POETRY, "--version"), "2.5", _poetry, _WHEEL,
        refused(tunnel="All attempts to connect to {host} failed.", alert="All attempts to connect to {host} failed."),
    ),
    Client(
        "npm", ("npm", "--version"), "11.19", _npm, _TARBALL,
        refused(
            tunnel=f"npm error 403 403 Forbidden - GET https://{{host}}/{NAME}",
            alert=f"npm error request to https://{{host}}/{NAME} failed, reason: {_NODE_ALERT}",
        ),
    ),
    Client(
        "Yarn 1", ("node", YARN1, "--version"), "1.22", _yarn1, _TARBALL,
        refused(
            tunnel=f"error Error: https://{{host}}/{NAME}: tunneling socket could not be established, statusCode=403",
            alert=f"error Error: write EPROTO {_NODE_ALERT}",
        ),
    ),
    Client(
        "Yarn 4", ("node", YARN4, "--version"), "4.18", _yarn4, _TARBALL,
        refused(
            tunnel="➤ YN0001: RequestError: Bad response: 403",
            alert=f"➤ YN0001: RequestError: write EPROTO {_NODE_ALERT}",
        ),
    ),
    Client(
        "pnpm", (PNPM, "--version"), "12.21", _pnpm, _TARBALL,
        refused(tunnel="  ╰─▶ tunnel error: unsuccessful", alert="  ╰─▶ received fatal alert: AccessDenied"),
    ),
    Client(
        "Bun", (BUN, "--version"), "1.4", _bun, _TARBALL,
        refused(
            tunnel=f"error: ProxyConnectFailed (403) downloading package manifest {NAME}",
            alert=f"error: TLSHandshakeFailed downloading package manifest {NAME}",
        ),
    ),
    Client(
        "cargo", ("cargo", "--version"), "1.95", _cargo, f"/crates/{NAME}/1.0.0/download",
        refused(
            tunnel=(101, "  [56] Failure when receiving data from the peer (CONNECT tunnel failed, response 403)"),
            alert=(101, f"  [35] SSL connect error ({_CURL_ALERT})"),
        ),
    ),
    Client(
        "Go", ("go", "version"), "1.19", _go, f"/go/{MODULE}/@v/v1.0.0.zip",
        refused(
            tunnel=f'go: {MODULE}@v1.0.0: Get "https://{{host}}/go/{MODULE}/@v/v1.0.0.info": Forbidden',
            alert=f'go: {MODULE}@v1.0.0: Get "https://{{host}}/go/{MODULE}/@v/v1.0.0.info": '
            "remote error: tls: access denied",
        ),
    ),
    Client(
        "Maven", ("mvn", "--version"), "3.8", _maven, f"/maven/test/{NAME}/1.0/{NAME}-1.0.pom",
        refused(
            tunnel=f"[FATAL] Non-resolvable parent POM for test:x:1.0: {_POM}authorization failed for {_POM_URL}, "
            f"status: 403 Forbidden {_BY_MAVEN}",
            alert=f"[ERROR]     Non-resolvable parent POM for test:x:1.0: {_POM}transfer failed for {_POM_URL} "
            f"{_BY_MAVEN}: Received fatal alert: access_denied -> [Help 2]",
        ),
        needs_trust_store=True,
    ),
    Client(
        "gem", ("gem", "--version"), "3.3", _gem, f"/gems/gems/{NAME}-1.0.gem",
        refused(
            tunnel=Words(1, ("ERROR:  While executing gem ... (Net::HTTPServerException)", '    403 "Forbidden"')),
            # That it ends with 0 is gem's own way.
            alert=Words(0, (f"          Unable to download data from https://{{host}}/gems/ - {_GEM_ALERT} (…)",)),
        ),
    ),
)  # fmt: skip
