"""The origin of what is read inside TLS: nginx with HTTP/1.1 and HTTP/2, and certificates of the bench's own.

One worker, a small answer of 128 bytes at /, the same with an id in each head at /varied, 256 MiB of zeros at /big (a
file without blocks: nothing is read from a disk), the same at 64 bytes a second at /slow, uploads at /up, which go to
the bench's folder in memory. No log, no bound of requests on a connection. Every proxy verifies its certificate against
the authority made here; the generator verifies nobody.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trustme

from bench import processes
from bench.build import NGINX
from bench.loads import NAME, Origin
from bench.peers import free_port, listens
from bench.processes import BenchError

if TYPE_CHECKING:
    import subprocess

BIG_BYTES = 256 << 20
_CONFIG = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log crit;
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    keepalive_timeout 600;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type text/plain;
    server {{
        listen 127.0.0.1:{port} ssl http2 backlog=4096;
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/certificate.pem;
        ssl_session_cache shared:sessions:4m;
        location = / {{ return 200 "{small}"; }}
        location = /varied {{
            add_header X-Request-Id $request_id;
            return 200 "{small}";
        }}
        location = /big {{ root {folder}; }}
        location = /slow {{
            alias {folder}/big;
            limit_rate 64;
        }}
        location /up/ {{
            root {folder};
            dav_methods PUT;
            client_max_body_size 0;
            client_body_buffer_size 256k;
        }}
    }}
}}
"""


class Authority:
    """The authority that signed the origins' certificates; `path` is its certificate, `with_key` that with its key.

    Proxies that want an authority to sign with get this one, too: nobody here tells two of them apart.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.path = os.path.join(folder, "authority.pem")
        self._authority.cert_pem.write_to_path(self.path)
        pem = self._authority.private_key_pem.bytes() + self._authority.cert_pem.bytes()
        self.with_key = pem.decode("ascii")

    def issue(self, name: str) -> bytes:
        """Return a certificate for a name, and its key, as PEM."""
        leaf = self._authority.issue_cert(name, key_type=trustme.KeyType.ECDSA)
        return leaf.private_key_pem.bytes() + b"".join(one.bytes() for one in leaf.cert_chain_pems)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class HttpsOrigin(Origin):
    """A running nginx, and the authority that its certificate is of. Its only port is `https`."""

    def __init__(self, folder: str) -> None:
        """Start it.

        Raises:
            BenchError: when it does not come up.
        """
        self.folder = os.path.join(folder, "origin")
        os.makedirs(os.path.join(self.folder, "up"), exist_ok=True)
        self.authority = Authority(self.folder)
        self.address = "127.0.0.1"
        port = free_port()
        self.ports = {"https": port}
        self._write("certificate.pem", self.authority.issue(NAME))
        with open(os.path.join(self.folder, "big"), "wb") as file:
            file.truncate(BIG_BYTES)
        config = _CONFIG.format(folder=self.folder, port=port, small="x" * 128)
        if os.geteuid() == 0:
            config = "user root;\n" + config
        path = self._write("nginx.conf", config.encode("ascii"))
        log = os.path.join(self.folder, "output")
        command = [NGINX, "-p", self.folder, "-c", path, "-e", os.path.join(self.folder, "error.log")]
        self._process: subprocess.Popen[bytes] = processes.start(command, log=log, cwd=self.folder)
        try:
            processes.wait_until(lambda: listens(port), f"nginx (its output: {log})", process=self._process)
        except BenchError:
            self.stop()
            raise

    @property
    def target(self) -> str:
        """What clients ask for."""
        return f"{NAME}:{self.ports['https']}"

    def _write(self, name: str, content: bytes) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "wb", opener=_private) as file:
            file.write(content)
        return path
