"""What TLS of a sink trusts, and what it shows of itself.

Rules of the file: OpenSSL reads a certificate and its key from a file only, so they lie in memory (memfd_create(2)) for
that moment, and on no disk. What is wrong with them is said without them.
"""

from __future__ import annotations

import os
import ssl
from typing import Final

from tidegate.model.errors import StartError

LONGEST_CERT: Final = 1 << 16
LONGEST_CLIENT_KEY: Final = 1 << 14  # bytes: a key of RSA with 16384 bits has 12 KiB in PEM


def tls_context(ca: str = "", cert: str = "", cert_key: bytes = b"") -> ssl.SSLContext:
    """Return what verifies a receiver by the system's roots or by these alone, and shows it our certificate.

    All are PEM; `cert` is the certificate and what leads from it to its authority.

    Raises:
        StartError: where they are no certificates, or the key is not the certificate's.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not ca:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=ca)
        except (ssl.SSLError, ValueError, TypeError):  # the last where it is not ASCII
            raise StartError("the CA file holds no certificate in PEM", fix="-----BEGIN CERTIFICATE----- ...") from None
    if cert or cert_key:
        _show(context, cert, cert_key)
    return context


def _show(context: ssl.SSLContext, cert: str, key: bytes) -> None:
    if not cert or not key:
        missing = "certificate" if not cert else "key"
        raise StartError(f"a client's {missing} is missing", fix="--client-cert FILE and --client-key FILE")
    if "PRIVATE KEY" in cert:
        raise StartError(
            "the client's certificate file holds a private key", fix="certificates only: --client-key FILE"
        )
    if b"ENCRYPTED" in key:
        raise StartError("the client's key has a password", fix="openssl pkey -in FILE -out NEW, and chmod 600 NEW")
    if len(cert) > LONGEST_CERT or len(key) > LONGEST_CLIENT_KEY:
        raise StartError("the client's certificate or key is too long", fix="one certificate, its chain and its key")
    fd = os.memfd_create("client", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(cert.encode("ascii", "replace") + b"\n" + key + b"\n")
        # Without a password of ours OpenSSL would ask for one on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{fd}", password="")
    except (ssl.SSLError, ValueError):
        raise StartError(
            "the client's certificate and key are no pair in PEM", fix="--client-cert FILE and --client-key FILE"
        ) from None
    finally:
        os.close(fd)
