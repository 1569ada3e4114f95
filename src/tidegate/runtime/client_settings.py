"""The one table of what programs need to be told so that they use the gate (GAT-10).

Data only. `PROXY_URL`, `HOST` and `PORT` in a value are filled in for each task. `tried` names the version the
setting was tried with; `when` says in which holds it is set:

* `always`: in every hold that has a gate;
* `no-capture`: only where programs are not captured (HLD-6), because the setting has a cost of its own.

`join` says what happens to a caller's value of the same name: `replace` (it would point elsewhere), `append` (the
tool takes the last of several) or `keep` (the caller knows better).
"""

from __future__ import annotations

PROXY_URL = "@PROXY_URL@"
HOST = "@HOST@"
PORT = "@PORT@"
NO_PROXY = "@NO_PROXY@"

_JAVA = (
    f"-Dhttp.proxyHost={HOST} -Dhttp.proxyPort={PORT} -Dhttps.proxyHost={HOST} -Dhttps.proxyPort={PORT}"
    " -Dhttp.nonProxyHosts=localhost|127.*|[::1]"
)

_UNIX = "curl 7.88, wget 1.21, git 2.39, Python 3.11, requests 2.34, Ruby 3.1, gem 3.3, Go 1.19"
_UPPER = (
    "Python 3.11, requests 2.34, aiohttp 3.14, websockets 17.4, grpcio 1.85, uv 0.13, poetry 2.5, Node 24.22,"
    " undici 7.16, Yarn 1.22, Bun 1.4, Chromium 156.0"
)

# variable, value, when, join, tool, tried
Setting = tuple[str, str, str, str, str, str]

SETTINGS: tuple[Setting, ...] = (
    ("http_proxy", PROXY_URL, "always", "replace", "curl, wget, git, Python, Ruby", _UNIX),
    ("https_proxy", PROXY_URL, "always", "replace", "curl, wget, git, Python, Ruby, Go, gRPC", _UNIX),
    ("all_proxy", PROXY_URL, "always", "replace", "curl, httpx", "curl 7.88, httpx 0.28"),
    ("HTTP_PROXY", PROXY_URL, "always", "replace", "Python, Node, Bun, Go, Rust's reqwest, Chromium", _UPPER),
    ("HTTPS_PROXY", PROXY_URL, "always", "replace", "Python, Node, Bun, Go, Rust's reqwest, Chromium", _UPPER),
    ("ALL_PROXY", PROXY_URL, "always", "replace", "curl, httpx", "curl 7.88, httpx 0.28"),
    ("no_proxy", NO_PROXY, "always", "replace", "all of them", _UNIX),
    ("NO_PROXY", NO_PROXY, "always", "replace", "all of them", _UPPER),
    ("NODE_USE_ENV_PROXY", "1", "always", "replace", "Node 22.21 and 24 or newer", "Node 24.22; Node 20.20 ignores it"),
    (
        "npm_config_proxy",
        PROXY_URL,
        "always",
        "replace",
        "npm, pnpm: over a proxy line in .npmrc",
        "npm 11.19, pnpm 12.21",
    ),
    (
        "npm_config_https_proxy",
        PROXY_URL,
        "always",
        "replace",
        "npm, pnpm: over a proxy line in .npmrc",
        "npm 11.19, pnpm 12.21",
    ),
    ("npm_config_noproxy", NO_PROXY, "always", "replace", "npm, pnpm", "npm 11.19, pnpm 12.21"),
    ("YARN_HTTP_PROXY", PROXY_URL, "always", "replace", "Yarn 2 and newer", "Yarn 4.18"),
    ("YARN_HTTPS_PROXY", PROXY_URL, "always", "replace", "Yarn 2 and newer", "Yarn 4.18"),
    ("PIP_PROXY", PROXY_URL, "always", "replace", "pip: over a proxy line in pip.conf", "pip 23.2"),
    ("CARGO_HTTP_PROXY", PROXY_URL, "always", "replace", "cargo: over a proxy line in its config", "cargo 1.95"),
    (
        "JAVA_TOOL_OPTIONS",
        _JAVA,
        "no-capture",
        "append",
        "Java: prints a line at each start, so it is set only where nothing else reaches a JVM",
        "Java 17.0, Maven 3.8",
    ),
)

GIT_CONFIG: tuple[tuple[str, str], ...] = (("http.proxy", PROXY_URL),)
"""Pairs for git's GIT_CONFIG_COUNT, set after the caller's own: over an http.proxy line in a gitconfig (git 2.39)."""

# variable, value, join, tool, tried
Trusted = tuple[str, str, str, str, str]

# Empty is "no password" to the JVM; a caller's own, for another store, would be taken for this one's.
_STORE = "-Djavax.net.ssl.trustStore=@JAVA@ -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword="

TRUST: tuple[Trusted, ...] = (
    (
        "SSL_CERT_FILE",
        "@BUNDLE@",
        "replace",
        "OpenSSL: Python, httpx, aiohttp, uv, pnpm, Ruby, gem, Go, .NET",
        "Python 3.11, httpx 0.28, aiohttp 3.14, uv 0.13, pnpm 12.21, Ruby 3.1, gem 3.3, Go 1.19",
    ),
    ("CURL_CA_BUNDLE", "@BUNDLE@", "replace", "curl, requests", "curl 7.88, requests 2.34"),
    (
        "REQUESTS_CA_BUNDLE",
        "@BUNDLE@",
        "replace",
        "requests: poetry, twine",
        "requests 2.34, poetry 2.5, twine 7.0",
    ),
    ("PIP_CERT", "@BUNDLE@", "replace", "pip", "pip 23.2"),
    ("GIT_SSL_CAINFO", "@BUNDLE@", "replace", "git", "git 2.39"),
    (
        "NODE_EXTRA_CA_CERTS",
        "@BUNDLE@",
        "replace",
        "Node, npm, Yarn 2 and newer, Bun",
        "Node 20.20 and 24.22, npm 11.19, Yarn 4.18, Bun 1.4",
    ),
    (
        "npm_config_cafile",
        "@BUNDLE@",
        "replace",
        "npm, Yarn 1: over a cafile line in .npmrc, which counts more than Node's own",
        "npm 11.19, Yarn 1.22",
    ),
    ("YARN_HTTPS_CA_FILE_PATH", "@BUNDLE@", "replace", "Yarn 2 and newer", "Yarn 4.18"),
    ("CARGO_HTTP_CAINFO", "@BUNDLE@", "replace", "cargo", "cargo 1.95"),
    ("AWS_CA_BUNDLE", "@BUNDLE@", "replace", "AWS command line and SDKs", "aws 1.45"),
    ("DENO_CERT", "@BUNDLE@", "replace", "Deno", "Deno 2.9"),
    ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "@BUNDLE@", "replace", "gRPC's C core", "grpcio 1.85"),
    ("BUNDLE_SSL_CA_CERT", "@BUNDLE@", "replace", "bundler", "bundler 2.3"),
    ("HEX_CACERTS_PATH", "@BUNDLE@", "replace", "hex", "not tried"),
    ("NIX_SSL_CERT_FILE", "@BUNDLE@", "replace", "nix", "nix 2.8"),
    ("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "@BUNDLE@", "replace", "gcloud", "not tried"),
    (
        "JAVA_TOOL_OPTIONS",
        _STORE,
        "append",
        "Java: prints a line at each start",
        "Java 17.0, Maven 3.8",
    ),
)
"""What programs are told where some hosts are read inside TLS (INS-2): one bundle for all, and Java's kind of it."""
