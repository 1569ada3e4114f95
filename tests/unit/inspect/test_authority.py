"""The run's authority, judged by the strictest verifiers that are installed (INS-1; B103, B104, B106, B107)."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from tidegate.inspect.authority import AUTHORITY_LIFE, BACKDATED, DAY, LEAF_LIFE, Authority, NotCoveredError
from tidegate.model.host import Host, canonical_host
from tidegate.policy.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCOPE = Scope(names=("api.example.com",), suffixes=("example.org",), literals=("1.2.3.4", "2600:beef::1"))
NOW = 1_900_000_000.0  # a day in 2030


def real() -> float:
    """The wall clock, for clients that have one of their own."""
    return dt.datetime.now(dt.UTC).timestamp()


def made(scope: Scope = SCOPE, now: float | None = None) -> Authority:
    """An authority of the lab."""
    return Authority(scope, "20300101-000000-abcd", real if now is None else lambda: now)


def host(text: str) -> Host:
    """A host as a request names it."""
    return canonical_host(text)


def files(folder: Path, authority: Authority, text: str) -> tuple[str, str]:
    """Write roots and a leaf with its key down, for verifiers that read files."""
    roots, leaf = folder / "roots.pem", folder / "leaf.pem"
    roots.write_bytes(b"".join(authority.certificates))
    leaf.write_bytes(authority.mint(host(text)).pem)
    return str(roots), str(leaf)


@pytest.mark.parametrize("name", ["api.example.com", "a.example.org", "b.a.example.org", "1.2.3.4", "[2600:beef::1]"])
def test_openssl_takes_a_leaf_in_its_strictest_mode(tmp_path: Path, name: str) -> None:
    """B103, B104: `openssl verify -x509_strict` accepts it for that host, and for no neighbour."""
    roots, leaf = files(tmp_path, made(), name)
    kind = "-verify_ip" if host(name).is_literal else "-verify_hostname"
    argv = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", roots, kind]
    done = subprocess.run([*argv, name.strip("[]"), leaf], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    other = "1.2.3.5" if host(name).is_literal else "www.example.com"
    assert subprocess.run([*argv, other, leaf], capture_output=True, check=False).returncode


def test_the_profile_is_what_verifiers_ask_for() -> None:
    """B103: each extension, its being critical, the serial's size and the key's curve."""
    authority = made(now=NOW)
    root = x509.load_pem_x509_certificate(authority.certificates[0])
    leaf = x509.load_pem_x509_certificates(authority.mint(host("api.example.com")).pem)[0]
    ski = root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    aki = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert aki.key_identifier == ski.digest
    assert leaf.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    for certificate, signs in ((root, True), (leaf, False)):
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
        assert basic.critical
        assert basic.value.ca is signs
        assert usage.critical
        assert (usage.value.key_cert_sign, usage.value.digital_signature) == (signs, not signs)
        assert certificate.serial_number.bit_length() > 64
        assert certificate.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]
    extended = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use.dotted_string for use in extended] == ["1.3.6.1.5.5.7.3.1"]
    assert authority.mint(host("api.example.com")).pem != authority.mint(host("api.example.com")).pem


def test_name_constraints_name_the_inspected_hosts_and_no_address() -> None:
    """INS-1: critical, the names alone; addresses have an authority of their own, which may sign no name."""
    names, literals = (x509.load_pem_x509_certificate(pem) for pem in made().certificates)
    constraints = names.extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    assert [name.value for name in constraints.value.permitted_subtrees or ()] == ["api.example.com", "example.org"]
    assert [str(name.value) for name in constraints.value.excluded_subtrees or ()] == ["0.0.0.0/0", "::/0"]
    own = literals.extensions.get_extension_for_class(x509.NameConstraints)
    assert own.critical
    assert [str(name.value) for name in own.value.permitted_subtrees or ()] == [
        "1.2.3.4/32",
        "2600:beef::1/128",
        "invalid",
    ]


def test_everything_leaves_names_open_and_addresses_shut() -> None:
    """INS-1: a rule for `*` cannot be written as names; addresses stay excluded."""
    (pem,) = made(Scope(everything=True)).certificates
    constraints = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.NameConstraints).value
    assert constraints.permitted_subtrees is None
    assert len(constraints.excluded_subtrees or ()) == 2


@pytest.mark.parametrize("text", ["example.com", "www.example.com", "x.api.example.com", "1.2.3.5", "[2600:beef::2]"])
def test_nothing_is_minted_for_a_host_outside_the_scope(text: str) -> None:
    """INS-1: subdomains of an exact host too, which its name constraints alone would let pass."""
    authority = made()
    assert not authority.covers(host(text))
    with pytest.raises(NotCoveredError):
        authority.mint(host(text))


@pytest.mark.parametrize(
    ("signed_for", "root"),
    [("evil.test", 0), ("9.9.9.9", 0), ("1.2.3.4", 0), ("9.9.9.9", 1), ("api.example.com", 1)],
)
def test_verifiers_refuse_what_the_authority_must_not_sign(tmp_path: Path, signed_for: str, root: int) -> None:
    """INS-1: with the key in hand, a leaf for another name or any address is refused by its name constraints."""
    authority = made()
    # What somebody could do who had stolen the key.
    wide = Scope(names=("evil.test", "api.example.com"), literals=("9.9.9.9", "1.2.3.4"))
    thief = Authority(wide, "x", real)
    thief._key = authority._key
    mine = [x509.load_pem_x509_certificate(pem) for pem in authority.certificates]
    thief._names = thief._literals = mine[root]
    (tmp_path / "root.pem").write_bytes(authority.certificates[root])
    (tmp_path / "leaf.pem").write_bytes(thief.mint(host(signed_for)).pem)
    argv = ["openssl", "verify", "-CAfile", str(tmp_path / "root.pem"), str(tmp_path / "leaf.pem")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "subtree violation" in done.stdout + done.stderr


def test_clocks_that_are_wrong_by_a_day_still_verify() -> None:
    """B106: root and leaf are valid two days back and some days forward; leafs stay below 398 days."""
    authority = made(now=NOW)
    root = x509.load_pem_x509_certificate(authority.certificates[0])
    leaf = x509.load_pem_x509_certificates(authority.mint(host("api.example.com")).pem)[0]
    for certificate, life in ((root, AUTHORITY_LIFE), (leaf, LEAF_LIFE)):
        assert certificate.not_valid_before_utc.timestamp() == NOW - BACKDATED
        assert certificate.not_valid_after_utc.timestamp() == NOW + life
    assert LEAF_LIFE + BACKDATED < 398 * DAY


@pytest.mark.parametrize(("hours", "good"), [(-25, True), (-47, True), (12, True), (-49, False)])
def test_a_verifier_whose_clock_is_wrong_by_a_day_agrees(tmp_path: Path, hours: int, good: bool) -> None:
    """B106: OpenSSL, told another time; more than two days behind is too much, which shows that it looks."""
    roots, leaf = files(tmp_path, made(now=NOW), "api.example.com")
    argv = ["openssl", "verify", "-attime", str(int(NOW) + hours * 3600), "-CAfile", roots, leaf]
    assert (subprocess.run(argv, capture_output=True, check=False).returncode == 0) is good


def test_leafs_end_with_their_authority_and_then_there_are_none() -> None:
    """B107: no leaf outlives the root; past its end nothing is minted, and whoever asked hears it."""
    now = [NOW]
    authority = Authority(SCOPE, "t", lambda: now[0])
    leaf = authority.mint(host("api.example.com"))
    assert leaf.renew_at == pytest.approx(NOW + LEAF_LIFE * 2 / 3)
    now[0] = NOW + AUTHORITY_LIFE - DAY
    assert authority.mint(host("api.example.com")).ends_at == NOW + AUTHORITY_LIFE
    now[0] = NOW + AUTHORITY_LIFE
    with pytest.raises(NotCoveredError):
        authority.mint(host("api.example.com"))


class Site:
    """A TLS server on loopback that shows a leaf of the authority; for clients that check for themselves."""

    def __init__(self, folder: Path, name: str) -> None:
        self.roots, leaf = files(folder, made(), name)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(leaf)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                sock = self._listener.accept()[0]
            except OSError:
                return
            try:
                with self._context.wrap_socket(sock, server_side=True) as inner:
                    inner.recv(4096)
                    inner.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            except OSError:
                continue

    def close(self) -> None:
        """Stop."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site that claims to be api.example.com."""
    made_site = Site(tmp_path, "api.example.com")
    yield made_site
    made_site.close()


def test_python_verifies_it_strictly(site: Site) -> None:
    """B103: Python with VERIFY_X509_STRICT, which 3.13 sets by itself; another name fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(site.roots)
    with (
        socket.create_connection(("127.0.0.1", site.port)) as sock,
        context.wrap_socket(sock, server_hostname="api.example.com") as inner,
    ):
        assert inner.version() == "TLSv1.3"
    with socket.create_connection(("127.0.0.1", site.port)) as sock, pytest.raises(ssl.SSLCertVerificationError):
        context.wrap_socket(sock, server_hostname="www.example.com")


GO = """package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "os")
func main() {
  pem, _ := os.ReadFile(os.Args[1]); pool := x509.NewCertPool(); pool.AppendCertsFromPEM(pem)
  for _, name := range []string{"api.example.com", "www.example.com"} {
    c, err := tls.Dial("tcp", os.Args[2], &tls.Config{RootCAs: pool, ServerName: name}); fmt.Println(err == nil)
    if err == nil { c.Close() }
  }
}
"""
JAVA = """import javax.net.ssl.*; import java.security.*; import java.security.cert.*; import java.io.*;
public class Look { public static void main(String[] a) throws Exception {
  KeyStore store = KeyStore.getInstance("PKCS12"); store.load(null, null); int n = 0;
  CertificateFactory made = CertificateFactory.getInstance("X.509");
  for (java.security.cert.Certificate c : made.generateCertificates(new FileInputStream(a[0])))
    store.setCertificateEntry("c" + n++, c);
  TrustManagerFactory f = TrustManagerFactory.getInstance("PKIX"); f.init(store);
  SSLContext x = SSLContext.getInstance("TLS"); x.init(null, f.getTrustManagers(), null);
  for (String name : new String[]{"api.example.com", "www.example.com"}) {
    java.net.Socket plain = new java.net.Socket("127.0.0.1", Integer.parseInt(a[1]));
    SSLSocket s = (SSLSocket) x.getSocketFactory().createSocket(plain, name, 443, true);
    SSLParameters p = s.getSSLParameters(); p.setEndpointIdentificationAlgorithm("HTTPS"); s.setSSLParameters(p);
    try { s.startHandshake(); System.out.println(true); } catch (SSLException e) { System.out.println(false); }
    plain.close();
  } } }
"""
NODE = """const tls = require("tls"), fs = require("fs"); let left = ["api.example.com", "www.example.com"];
const next = () => { const servername = left.shift(); if (!servername) return;
  const s = tls.connect({port: +process.argv[2], ca: fs.readFileSync(process.argv[1]), servername}, () => {
    console.log(true); s.destroy(); next(); });
  s.on("error", () => { console.log(false); next(); }); }; next();
"""


@pytest.mark.parametrize("client", [pytest.param("go", marks=pytest.mark.slow), "java", "node", "curl", "gnutls-cli"])
def test_other_stacks_verify_it_and_only_for_its_name(client: str, site: Site, tmp_path: Path) -> None:
    """B103: Go, Java, Node, curl and GnuTLS accept the leaf for its host, and refuse it for another."""
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not installed")
    where = f"127.0.0.1:{site.port}"
    if client == "go":
        (tmp_path / "look.go").write_text(GO)
        argvs = [["go", "run", "look.go", site.roots, where]]  # builds crypto/tls where the cache is cold
    elif client == "java":
        (tmp_path / "Look.java").write_text(JAVA)
        argvs = [["java", "Look.java", site.roots, str(site.port)]]
    elif client == "node":
        argvs = [["node", "-e", NODE, site.roots, str(site.port)]]
    elif client == "curl":
        argvs = [
            ["curl", "-sS", "--cacert", site.roots, "--noproxy", "*", "--connect-to", f"::{where}", f"https://{name}/"]
            for name in ("api.example.com", "www.example.com")
        ]
    else:
        argvs = [
            ["gnutls-cli", f"--x509cafile={site.roots}", f"--sni-hostname={name}", f"--verify-hostname={name}", where]
            for name in ("api.example.com", "www.example.com")
        ]
    keep = ("PATH", "HOME", "GOFLAGS", "LANG")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    env |= {"GO111MODULE": "off"}
    env.setdefault("HOME", str(tmp_path))  # a service has none, and go keeps what it builds below it
    out = [
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=100,
            env=env,
        )
        for argv in argvs
    ]
    if len(out) == 1:
        assert out[0].stdout.split() == ["true", "false"], out[0].stdout + out[0].stderr
    else:
        assert [done.returncode == 0 for done in out] == [True, False], [done.stdout + done.stderr for done in out]
