"""The door for a phone: TLS on an address that the owner named with `tidegate serve --listen ADDR:PORT` (SRV-2).

Rules of the file: never on its own, never on all addresses (the Host header is checked against the one that was named),
never without TLS. The certificate is from an authority made for this state folder and nothing else: its critical name
constraints hold exactly that address, so that a phone which trusts it trusts it for nothing more, and its key is
forgotten once it has signed. Keys are P-256. Source: RFC 5280 section 4.2.1.10; CA/Browser Forum, 398 days for a leaf.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import socket
import ssl
from hashlib import sha256
from typing import Final

import msgspec

from tidegate.model.destination import PortError, parse_port, split_authority
from tidegate.model.errors import StartError, UsageError
from tidegate.model.host import HostError, canonical_host
from tidegate.runtime.state import make_private_folder, write_private
from tidegate.server.api.listener import bind_tcp

AUTHORITY_DAYS: Final = 3650
LEAF_DAYS: Final = 397
RENEW_DAYS: Final = 30
_NAME: Final = "Tidegate on this machine"


class Outside(msgspec.Struct):
    """A bound socket outside of loopback, and the name it is asked by (an IPv6 literal in brackets)."""

    socket: socket.socket
    address: str
    name: str
    port: int


class Certificate(msgspec.Struct, frozen=True):
    """What a door shows: the context to serve with, and the SHA-256 of the certificate for people to compare."""

    context: ssl.SSLContext
    fingerprint: str


def bind_outside(text: str) -> Outside | None:
    """Return the socket for `ADDR:PORT`, None for ''.

    Raises:
        UsageError: for what is no single address outside of loopback with a port.
        StartError: when it cannot be listened on.
    """
    if not text:
        return None
    advice = "write an address of this machine that the phone reaches, such as 192.168.1.5:7332"
    try:
        host_text, port_text = split_authority(text)
        host, port = canonical_host(host_text), parse_port(port_text or "")
        address = ipaddress.ip_address(host.text)
    except (HostError, PortError, ValueError):
        raise UsageError(f"--listen {text!r} is not ADDRESS:PORT", fix=advice) from None
    if address.is_unspecified or address.is_loopback or address.is_multicast:
        kind = "loopback, which is served anyway" if address.is_loopback else "no single address"
        raise UsageError(f"--listen {text!r}: that is {kind}", fix=advice)
    try:
        sock = bind_tcp(host.text, port)
    except OSError as error:
        raise StartError(f"{text} cannot be listened on: {error.strerror}", fix=advice) from None
    return Outside(sock, host.text, host.bracketed, port)


def certificate(state: str, address: str, now: dt.datetime) -> Certificate:
    """Return the certificate for an address: the one in `<state>/ca`, or a new one where it is old or another's.

    Raises:
        StartError: when it cannot be made or kept.
    """
    folder = os.path.join(state, "ca")
    make_private_folder(folder)
    path = os.path.join(folder, "portal.pem")
    try:
        if not _is_good(path, address, now):
            _make(folder, path, address, now)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(path)
        with open(path, encoding="ascii") as file:
            der = ssl.PEM_cert_to_DER_cert(_first_certificate(file.read()))
    except (OSError, ValueError) as error:
        raise StartError(f"the certificate in {folder!r} cannot be made: {error}", fix="move it away") from None
    digest = sha256(der).hexdigest().upper()
    return Certificate(context, ":".join(digest[i : i + 2] for i in range(0, len(digest), 2)))


def _first_certificate(pem: str) -> str:
    start = pem.index("-----BEGIN CERTIFICATE-----")
    end = "-----END CERTIFICATE-----"
    return pem[start : pem.index(end, start) + len(end)]


def _is_good(path: str, address: str, now: dt.datetime) -> bool:
    from cryptography import x509

    try:
        with open(path, encoding="ascii") as file:
            leaf = x509.load_pem_x509_certificate(_first_certificate(file.read()).encode())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    good_for = names.get_values_for_type(x509.IPAddress)
    renewal = leaf.not_valid_after_utc - dt.timedelta(days=RENEW_DAYS)
    return good_for == [ipaddress.ip_address(address)] and leaf.not_valid_before_utc <= now < renewal


def _make(folder: str, path: str, address: str, now: dt.datetime) -> None:
    """Make an authority for one address and a leaf by it; write the leaf's key and both certificates."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID

    from tidegate.model.certificate_profile import builder, name, new_key, private_pem, usage

    network = x509.IPAddress(ipaddress.ip_network(address))
    authority_key, leaf_key = new_key(), new_key()
    signer = authority_key.public_key()
    issuer = name(_NAME)
    begins = now - dt.timedelta(days=1)
    authority = (
        builder(issuer, issuer, signer, signer, begins, now + dt.timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs=True), critical=True)
        .add_extension(x509.NameConstraints([network], None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    leaf = (
        builder(name(address), issuer, leaf_key.public_key(), signer, begins, now + dt.timedelta(days=LEAF_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    # The authority's own key is not kept: it signs this one leaf, and a new leaf is a new authority.
    write_private(path, private_pem(leaf_key) + leaf.public_bytes(pem) + authority.public_bytes(pem))
    write_private(os.path.join(folder, "ca.pem"), authority.public_bytes(pem))
