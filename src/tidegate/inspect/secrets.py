"""Secrets of a task: swapped in on their way out, in one place, over TLS, for their own hosts and nowhere else (INS-5).

Rules of the file:

* A task has placeholders only. One that is met where it belongs becomes the value; one met anywhere else stops the
  request before anything of it is sent: another host or port, clear text, another header, another parameter.
* What is looked at is the head of a request: its target, as it is and percent-decoded, its fields, and what Basic
  authorization has inside. A body is read where a secret of its host belongs in one (body_look.py); a placeholder in
  another one is worth nothing to whoever gets it, and passes.
* Where a host takes the key of a model service, it takes stand-ins alone: by a key of somebody else's, what the task
  knows would go to his account, who can read there what such a service keeps (INS-8).
* A value is in no representation, error or log of this module; errors name the secret.
* It is looked for in every form that values are looked for in answers (scrub.py), base64 at each place too.
* A signature over a placeholder cannot be made good by a swap: such a request is refused with that reason (B124).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from urllib.parse import quote_from_bytes, unquote_to_bytes

from tidegate.inspect.body_look import BodyGuard
from tidegate.inspect.clean import Cleaner
from tidegate.inspect.codings import Windows
from tidegate.inspect.scrub import Scrubber, forms
from tidegate.model.closed import Closed
from tidegate.model.reason import Reason
from tidegate.model.value import Value
from tidegate.wire.errors import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Field = tuple[bytes, bytes]

_AUTHORIZATION = b"authorization"
SIGNING = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
"""Names of secrets that are never sent as they are: AWS's tools sign with them (Signature Version 4 and 4A)."""
_SIGNED = (b"AWS4-HMAC-SHA256", b"AWS4-ECDSA-P256-SHA256")
_SIGNS = (
    "is used to sign a request, and a signature cannot be swapped: give the task credentials of its own that are short"
    " and allow little (aws sts assume-role), or let a program outside of it speak to AWS"
)


class Where(Closed):
    """The place in a request where a secret belongs."""

    HEADER = "header"
    BEARER = "bearer"
    BASIC = "basic"
    QUERY = "query"
    BODY = "body-field"


class Place(Value):
    """`name` is that of the header (lower case), parameter or field, '' for Authorization."""

    where: Where
    name: bytes = b""

    def __str__(self) -> str:
        named = f" {self.name.decode('ascii', 'replace')}" if self.name else ""
        return f"{self.where.value}{named}"


class Secret(Value):
    """One secret of one task. `hosts` are (canonical host, port); `value` and `placeholder` have one outline.

    `alone` are fields in which its hosts take nothing but stand-ins: names of headers (lower case), of parameters with
    a `?` before them.
    """

    name: str
    hosts: tuple[tuple[str, int], ...]
    place: Place
    value: bytes
    placeholder: bytes
    alone: tuple[bytes, ...] = ()

    def __repr__(self) -> str:
        return f"Secret({self.name!r}, {self.place})"


class MisdirectedError(WireError):
    """A placeholder was met where it does not belong, or cannot be swapped. `secret` is its name."""

    def __init__(self, secret: str, why: str) -> None:
        super().__init__(Reason.SECRET_MISDIRECTED, f"the secret {secret} {why}")
        self.secret = secret


class Vault:
    """The secrets of one task. `used` hears of the first use of each at each of its hosts: name, host and port."""

    __slots__ = ("_by_host", "_cleaners", "_forms", "_secrets", "_told", "bodies", "used")

    def __init__(self, secrets: Iterable[Secret]) -> None:
        self._secrets = tuple(secrets)
        self._forms = [(secret, tuple(dict.fromkeys(forms(secret.placeholder)))) for secret in self._secrets]
        self.used: Callable[[str, str, int], None] | None = None
        self._told: set[tuple[str, str, int]] = set()
        self._by_host: dict[tuple[str, int], list[Secret]] = {}
        for secret in self._secrets:
            for host in secret.hosts:
                self._by_host.setdefault(host, []).append(secret)
        windows = Windows()
        self._cleaners = {
            host: Cleaner(Scrubber((one.value, one.placeholder) for one in held), windows)
            for host, held in self._by_host.items()
        }
        in_bodies = {
            host: [one for one in held if one.place.where is Where.BODY] for host, held in self._by_host.items()
        }
        self.bodies = BodyGuard({host: held for host, held in in_bodies.items() if held}, self._tell)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The canonical hosts of all of them."""
        return tuple(dict.fromkeys(host for host, _ in self._by_host))

    def belong(self, host: str, port: int) -> bool:
        """Whether some secret is for this canonical host and port."""
        return (host, port) in self._by_host

    def cleaner(self, host: str, port: int) -> Cleaner | None:
        """Return what keeps values out of that host's answers; None where it has no secret."""
        return self._cleaners.get((host, port))

    def swap(
        self, host: str, port: int, target: bytes, fields: Sequence[Field], *, tls: bool, method: str = ""
    ) -> tuple[bytes, list[Field]]:
        """Return the target and the fields that travel on.

        Raises:
            MisdirectedError: see the head of the file; nothing of the request may be sent then.
        """
        held = self._by_host.get((host, port), ()) if tls else ()
        sent = list(fields)
        for secret in held:
            other = _other_key(secret.alone, held, target, sent) if secret.alone else b""
            if other:
                why = f"is the key for {host}:{port}, and another one was sent there in {other.decode('ascii')}"
                raise MisdirectedError(secret.name, why)
        put = []
        for secret in held:
            before = target, sent
            target, sent = _put(secret, target, sent)
            if before != (target, sent):
                put.append((secret.name, host, port))
        self._check(host, port, target, [(method.encode(), b""), *sent], tls=tls)
        for use in put:
            self._tell(*use)
        return target, sent

    def _tell(self, name: str, host: str, port: int) -> None:
        use = name, host, port
        if use not in self._told:
            self._told.add(use)
            if self.used is not None:
                self.used(*use)

    def _check(self, host: str, port: int, target: bytes, fields: Sequence[Field], *, tls: bool) -> None:
        shown = f"{host}:{port}"
        parts = [target, unquote_to_bytes(target)]
        for name, value in fields:
            parts += (name, value)
            if b"%" in value:
                parts.append(unquote_to_bytes(value))
            if name.lower() in {_AUTHORIZATION, b"proxy-authorization"}:
                parts.append(_inside_basic(value) or b"")
        joined = b"\n".join(parts)
        names = b"\n".join(name for name, _ in fields).lower()  # in HTTP/2 they are in lower case (RFC 9113, 8.2.1)
        signed = any(mark in joined for mark in _SIGNED)
        for secret, shapes in self._forms:
            if signed and tls and secret.name in SIGNING and (host, port) in secret.hosts:
                raise MisdirectedError(secret.name, _SIGNS)
            if not any(form in joined for form in shapes) and secret.placeholder.lower() not in names:
                continue
            if signed:
                raise MisdirectedError(secret.name, _SIGNS)
            if (host, port) not in secret.hosts:
                raise MisdirectedError(secret.name, f"does not belong to {shown}")
            if not tls:
                raise MisdirectedError(secret.name, f"would travel in clear text to {shown}")
            raise MisdirectedError(secret.name, f"belongs in {secret.place}, and was sent to {shown} elsewhere")


def _other_key(names: Sequence[bytes], held: Iterable[Secret], target: bytes, fields: Iterable[Field]) -> bytes:
    """Return the name of a field, of those that take stand-ins alone, with something else in it; b'' for none."""
    stand_ins = {one.placeholder for one in held}
    for name, value in fields:
        lowered = name.lower()
        if lowered not in names or not value.strip():
            continue
        inside = _inside_basic(value)
        scheme, _, token = value.strip().rpartition(b" ")
        said = inside.split(b":", 1) if inside is not None else [token] if scheme.lower() in _SCHEMES else []
        if stand_ins.isdisjoint(said):
            return lowered
    for one in target.partition(b"?")[2].split(b"&"):
        name, _, value = one.partition(b"=")
        parameter = b"?" + unquote_to_bytes(name)
        if value and parameter in names and unquote_to_bytes(value) not in stand_ins:
            return parameter[1:]
    return b""


_SCHEMES = frozenset((b"", b"bearer", b"token"))


def _put(secret: Secret, target: bytes, fields: list[Field]) -> tuple[bytes, list[Field]]:
    where, wanted = secret.place.where, secret.place.name
    if where is Where.QUERY:
        return _put_in_query(secret, target), fields
    swapped = []
    for name, value in fields:
        lowered = name.lower()
        if where is Where.HEADER and lowered == wanted:
            value = value.replace(secret.placeholder, secret.value)  # noqa: PLW2901 (a field is name and value)
        elif where is Where.BEARER and lowered == _AUTHORIZATION:
            scheme, _, token = value.partition(b" ")
            if scheme.lower() in {b"bearer", b"token"} and token.strip() == secret.placeholder:
                value = scheme + b" " + secret.value  # noqa: PLW2901
        elif where is Where.BASIC and lowered == _AUTHORIZATION:
            inside = _inside_basic(value)
            if inside is not None and secret.placeholder in inside.split(b":", 1):
                parts = [secret.value if one == secret.placeholder else one for one in inside.split(b":", 1)]
                value = b"Basic " + b64encode(b":".join(parts))  # noqa: PLW2901
        swapped.append((name, value))
    return target, swapped


def _put_in_query(secret: Secret, target: bytes) -> bytes:
    path, mark, query = target.partition(b"?")
    if not mark:
        return target
    swapped = []
    for one in query.split(b"&"):
        name, equals, value = one.partition(b"=")
        if name == secret.place.name and unquote_to_bytes(value) == secret.placeholder:
            value = quote_from_bytes(secret.value, safe="").encode()
        swapped.append(name + equals + value)
    return path + mark + b"&".join(swapped)


def _inside_basic(value: bytes) -> bytes | None:
    """Return what Basic authorization (RFC 7617) says, None where it is no such thing."""
    scheme, _, encoded = value.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        return b64decode(encoded.strip(), validate=True)
    except ValueError:
        return None
