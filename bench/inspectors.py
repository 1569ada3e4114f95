"""One class a proxy that reads inside TLS: the gate by a rule with methods, squid's ssl-bump, mitmproxy as it comes.

Each is set up as its operator would: the origin's certificate is verified against the one authority that is given, one
line of the log for each request where the proxy writes one, nothing cached. All of them sign with keys on P-256 where
they can be told to. The origin of each is an nginx of its own (https_origin.py).
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from typing import ClassVar

from bench.build import SQUID_OPENSSL
from bench.https_origin import HttpsOrigin
from bench.peers import Mitmproxy, Peer, Squid, Tidegate, give_to, said_by
from bench.processes import BenchError

H1, H2 = "h1", "h2"
_SQUID = os.path.join(SQUID_OPENSSL, "usr", "sbin", "squid")
_CERTIFICATES = os.path.join(SQUID_OPENSSL, "usr", "lib", "squid", "security_file_certgen")


class Inspector(Peer):
    """A peer whose origin has TLS. `speaks` is which HTTP its clients may."""

    speaks: ClassVar[frozenset[str]] = frozenset({H1, H2})
    modes = frozenset({"inspect"})
    origin: HttpsOrigin

    def make_origin(self) -> HttpsOrigin:
        """Return an origin with TLS."""
        return HttpsOrigin(self.folder)


class InspectingTidegate(Inspector, Tidegate):
    """The gate, with a rule that names methods: all of it is on, and each request is a line of the journal."""

    settings = "inspection: a rule with methods for the origin's name, a line of the journal for each request"

    def command(self) -> list[str]:
        """Write what it reads, return what runs it."""
        packages = sysconfig.get_paths()["purelib"]  # of cryptography and h2: the gate starts without any
        more = ["--read", self.origin.target, "--roots", self.origin.authority.path, "--packages", packages]
        return [*super().command(), *more]


class InspectingSquid(Inspector, Squid):
    """Debian's squid with OpenSSL. It speaks HTTP/1.1 only, so that is what its clients are offered."""

    package = "squid-openssl"
    settings = "inspection: ssl-bump of what it peeked at, 5 makers of certificates with 16 MB of them kept, in memory"
    speaks = frozenset({H1})

    def listening(self) -> str:
        """Return the lines about TLS."""
        store = self.path("certificates")
        if not os.path.exists(store):
            made = subprocess.run([_CERTIFICATES, "-c", "-s", store, "-M", "16MB"], capture_output=True, check=False)
            if made.returncode:
                raise BenchError(f"squid's store of certificates: {made.stderr.decode(errors='replace')[-200:]}")
        owned = [self.write("authority-with-key.pem", self.origin.authority.with_key)]
        owned += [os.path.join(path, name) for path, _, names in os.walk(store) for name in ("", *names)]
        give_to("proxy", *owned)
        return f"""
http_port 127.0.0.1:{self.port} ssl-bump tls-cert={owned[0]} generate-host-certificates=on \
dynamic_cert_mem_cache_size=16MB
sslcrtd_program {_CERTIFICATES} -s {store} -M 16MB
sslcrtd_children 5 startup=1
acl hello at_step SslBump1
ssl_bump peek hello
ssl_bump bump all
tls_outgoing_options cafile={self.origin.authority.path}
"""

    def program(self) -> str:
        """Return what is run."""
        return _SQUID

    @classmethod
    def version(cls) -> str:
        """Ask it."""
        return said_by([_SQUID, "-v"], r"Version (\S+)")


class InspectingMitmproxy(Inspector, Mitmproxy):
    """mitmproxy as it comes, without its screen."""

    settings = (
        "inspection: mitmdump --quiet, every host read, nothing kept, bodies of 1 MB and more passed on as they come"
    )

    def options(self) -> list[str]:
        """Return what it is told."""
        trusted = f"ssl_verify_upstream_trusted_ca={self.origin.authority.path}"
        return ["--set", trusted, "--set", "flow_detail=0", "--set", "stream_large_bodies=1m"]


INSPECTORS: tuple[type[Inspector], ...] = (InspectingTidegate, InspectingSquid, InspectingMitmproxy)
