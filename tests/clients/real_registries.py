"""Real registries for tests/clients: pypiserver and Verdaccio, and small ones (registries.py), behind a real front.

    house = House(folder)               # once for many tests: starts take seconds
    with house.open(lab.listener("1.2.3.4", 443)):
        ... https://pypi.test/, npm.test, crates.test, gems.test, maven.test, go.test and git.test
        ... house.arrived()             # the requests, as the front wrote them down: "PUT npm.test /mine 201"

nghttpx ends TLS for all of them, in HTTP/1.1 and HTTP/2 as the client wishes, with a certificate of `house.ca_file`.
Everything runs on the machine's side, on unix sockets; a listening socket of the lab leads to the front.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trustme

from tests.clients import registries
from tests.clients.kit import MODULES, TOOLS, absent
from tests.clients.servers import Accepting, relay_to
from tests.https_site import HttpsSite

if TYPE_CHECKING:
    from collections.abc import Iterator

FRONT = shutil.which("nghttpx", path=f"{os.environ['PATH']}:/usr/sbin") or ""
PYTHON = os.path.join(TOOLS, "poetry", "bin", "python")
VERDACCIO = os.path.join(MODULES, "verdaccio", "bin", "verdaccio")
HOSTS = ("pypi.test", "npm.test", "crates.test", "gems.test", "maven.test", "go.test", "git.test", "small.test")
TOKEN_USER = "tester"
_BACKENDS = {"pypi.test": "pypi", "npm.test": "npm"}  # the others: the small ones
_PATIENCE = 120.0  # seconds
_PYPI = (
    "import sys, pathlib, waitress, pypiserver\n"
    "app = pypiserver.app(roots=[pathlib.Path(sys.argv[1])], password_file='.', authenticate=[], overwrite=True)\n"
    "waitress.serve(app, unix_socket=sys.argv[2], max_request_body_size=1 << 28)\n"
)
_VERDACCIO = """
storage: {folder}/npm-storage
auth: {{htpasswd: {{file: {folder}/htpasswd}}}}
uplinks: {{}}
packages: {{'**': {{access: $all, publish: $authenticated, unpublish: $authenticated}}}}
web: {{enable: false}}
max_body_size: 64mb
log: {{type: stdout, format: json, level: error}}
"""


class House:
    """The registries and their front, until `close`."""

    def __init__(self) -> None:
        """Start them.

        Raises:
            Failed, Skipped: what they are made of is not here.
        """
        for what, path in (("nghttpx", FRONT), ("Verdaccio", VERDACCIO), ("pypiserver", PYTHON)):
            if not os.path.exists(path):
                absent(what)
        self._folder = folder = Path(tempfile.mkdtemp(prefix="tidegate-test-registries-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()
        try:
            self.small = self._small()
            self.packages = folder / "packages"
            self.packages.mkdir()
            name = f"{registries.NAME}-1.0-py3-none-any.whl"
            (self.packages / name).write_bytes(registries.wheel())
            self._start("pypi", [PYTHON, "-c", _PYPI, str(self.packages), str(folder / "pypi")])
            (folder / "verdaccio.yaml").write_text(_VERDACCIO.format(folder=folder))
            self._start(
                "npm",
                ["node", VERDACCIO, "-c", str(folder / "verdaccio.yaml"), "-l", f"unix:{folder}/npm"],
            )
            self.ca_file = self._front()
            self.token = self._fill_npm()
        except BaseException:
            self.close()
            raise

    def _small(self) -> HttpsSite:
        folder = self._folder
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(folder / "small"))
        listener.listen(64)
        site = HttpsSite(listener, [], folder)
        registries.crates(site, "crates.test")
        registries.maven_repository(site)
        registries.go_proxy(site)
        site.pages["/"] = ("text/xml", b"<ListAllMyBucketsResult><Buckets/></ListAllMyBucketsResult>\n")
        registries.takes_crates(site)
        registries.takes_others(site)
        if shutil.which("gem") is not None:
            registries.gem_server(site, folder / "gem")
        self._stack.enter_context(site)
        return site

    def _start(self, name: str, argv: list[str]) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
        with open(self._folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *argv],  # none outlives a test run that is killed
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._folder,
            )
        self._processes.append(process)
        end = time.monotonic() + _PATIENCE
        while not os.path.exists(self._folder / name):
            said = (self._folder / f"{name}.log").read_text(errors="replace")
            assert process.poll() is None, f"{argv[0]} ended with {process.returncode}: {said}"
            assert time.monotonic() < end, f"{argv[0]} did not start: {said}"
            time.sleep(0.02)

    def _front(self) -> str:
        folder = self._folder
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        leaf = authority.issue_cert(*HOSTS)
        leaf.private_key_pem.write_to_path(str(folder / "key.pem"))
        leaf.cert_chain_pems[0].write_to_path(str(folder / "leaf.pem"))
        (folder / "nghttpx.conf").write_text("")
        backends = [f"--backend=unix:{folder}/{_BACKENDS.get(host, 'small')};{host}/" for host in HOSTS]
        self._start(
            "front",
            [FRONT, f"--conf={folder}/nghttpx.conf", f"--frontend=unix:{folder}/front", *backends,
             f"--backend=unix:{folder}/small", "--workers=1", "--errorlog-file=/dev/stderr", "--log-level=ERROR",
             f"--accesslog-file={folder}/access",
             "--accesslog-format=$method $http_host $path $status $protocol_version",
             str(folder / "key.pem"), str(folder / "leaf.pem")],
        )  # fmt: skip
        return str(folder / "ca.pem")

    def _fill_npm(self) -> str:
        """Make a user, and publish the one package; return the user's token."""
        user = {"name": TOKEN_USER, "password": "password-of-a-test"}
        token = str(self._ask("PUT", f"/-/user/org.couchdb.user:{TOKEN_USER}", user)["token"])
        self._ask("PUT", f"/{registries.NAME}", registries.npm_document("https://npm.test/"), token)
        return token

    def _ask(self, method: str, path: str, what: object, token: str = "") -> Any:
        connection = http.client.HTTPConnection("npm.test")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self._folder / "npm"))
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        connection.request(method, path, json.dumps(what), headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        assert answer.status == 201, said
        return json.loads(said)

    @contextmanager
    def open(self, listener: socket.socket) -> Iterator[None]:
        """Let a listening socket of the lab lead to the front; what arrived before is forgotten."""
        with open(self._folder / "access", "wb"):
            pass
        with Accepting(listener, relay_to(str(self._folder / "front"))):
            yield

    def arrived(self) -> list[str]:
        """Return the requests that the front took: method, host, path and status."""
        return (self._folder / "access").read_text().splitlines()

    def close(self) -> None:
        """End everything and remove it."""
        try:
            for process in self._processes:
                process.terminate()
            for process in self._processes:
                process.wait(_PATIENCE)
            self._stack.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
