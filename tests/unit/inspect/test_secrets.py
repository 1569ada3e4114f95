"""Secrets go where they belong and nowhere else."""

from __future__ import annotations

import base64
import traceback

import pytest

from tidegate.inspect.secrets import MisdirectedError, Place, Secret, Vault, Where

VALUE = b"ghp_RealRealRealRealReal0001"
STANDS = b"ghp_FakeFakeFakeFakeFake0002"
HOST = ("api.test", 443)


def vault(place: Place, hosts: tuple[tuple[str, int], ...] = (HOST,)) -> Vault:
    """One secret."""
    return Vault([Secret("TOKEN", hosts, place, VALUE, STANDS)])


def basic(text: bytes) -> bytes:
    """The value of an Authorization field."""
    return b"Basic " + base64.b64encode(text)


BEARER = Place(Where.BEARER)
BASIC = Place(Where.BASIC)
HEADER = Place(Where.HEADER, b"x-api-key")
QUERY = Place(Where.QUERY, b"key")

RIGHT = [
    (BEARER, b"/", (b"Authorization", b"Bearer " + STANDS), b"/", (b"Authorization", b"Bearer " + VALUE)),
    (BEARER, b"/", (b"authorization", b"token " + STANDS), b"/", (b"authorization", b"token " + VALUE)),
    (BASIC, b"/", (b"Authorization", basic(b"u:" + STANDS)), b"/", (b"Authorization", basic(b"u:" + VALUE))),
    (BASIC, b"/", (b"Authorization", basic(STANDS + b":")), b"/", (b"Authorization", basic(VALUE + b":"))),
    (HEADER, b"/", (b"X-Api-Key", STANDS), b"/", (b"X-Api-Key", VALUE)),
    (HEADER, b"/", (b"x-api-key", b"k=" + STANDS), b"/", (b"x-api-key", b"k=" + VALUE)),
    (QUERY, b"/a?x=1&key=" + STANDS + b"&y", (b"A", b"b"), b"/a?x=1&key=" + VALUE + b"&y", (b"A", b"b")),
    (QUERY, b"/a?key=" + STANDS.replace(b"_", b"%5F"), (b"A", b"b"), b"/a?key=" + VALUE, (b"A", b"b")),
]


@pytest.mark.parametrize(("place", "target", "field", "to", "sent"), RIGHT)
def test_a_placeholder_in_its_place_becomes_the_value(
    place: Place, target: bytes, field: tuple[bytes, bytes], to: bytes, sent: tuple[bytes, bytes]
) -> None:
    """INS-5, B124: header, bearer, inside Basic, query; other fields are as they were."""
    other = (b"Accept", b"*/*")
    assert vault(place).swap(*HOST, target, [other, field], tls=True) == (to, [other, sent])


WRONG = [
    (BEARER, b"/", (b"X-Other", STANDS), "belongs in bearer"),
    (BEARER, b"/?t=" + STANDS, (b"A", b"b"), "belongs in bearer"),
    (BEARER, b"/" + STANDS.replace(b"_", b"%5f"), (b"A", b"b"), "belongs in bearer"),
    (BEARER, b"/", (b"Authorization", basic(b"u:" + STANDS)), "belongs in bearer"),
    (BEARER, b"/", (b"Authorization", b"Bearer x" + STANDS), "belongs in bearer"),
    (BASIC, b"/", (b"Authorization", b"Bearer " + STANDS), "belongs in basic"),
    (BASIC, b"/", (b"Authorization", basic(b"u:x" + STANDS)), "belongs in basic"),
    (HEADER, b"/", (b"X-Api-Keys", STANDS), "belongs in header x-api-key"),
    (QUERY, b"/?keys=" + STANDS, (b"A", b"b"), "belongs in query key"),
    (HEADER, b"/", (b"Authorization", b"AWS4-HMAC-SHA256 Credential=" + STANDS + b"/2026"), "signature"),
    (HEADER, b"/", (b"Authorization", b"AWS4-ECDSA-P256-SHA256 Credential=" + STANDS + b"/2026"), "signature"),
    (QUERY, b"/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" + STANDS + b"%2F2", (b"A", b"b"), "signature"),
    (BEARER, b"/", (b"X-Auth", base64.b64encode(b"me:" + STANDS + b":x")), "belongs in bearer"),
    (BEARER, b"/", (b"X-Auth", STANDS.hex().encode()), "belongs in bearer"),
    (BEARER, b"/", (b"Cookie", STANDS.replace(b"F", b"%46")), "belongs in bearer"),
    (BEARER, b"/", (STANDS, b"x"), "belongs in bearer"),
    (BEARER, b"/", (b"x-" + STANDS.lower(), b"x"), "belongs in bearer"),
    (Place(Where.BODY, b"key"), b"/?key=" + STANDS, (b"A", b"b"), "belongs in body-field key"),
]


@pytest.mark.parametrize(("place", "target", "field", "says"), WRONG)
def test_anywhere_else_it_stops_the_request(place: Place, target: bytes, field: tuple[bytes, bytes], says: str) -> None:
    """INS-5, B121, B124: by name, and the value is in no part of the error."""
    with pytest.raises(MisdirectedError, match=says) as stopped:
        vault(place).swap(*HOST, target, [field], tls=True)
    assert stopped.value.secret == "TOKEN"
    assert VALUE.decode() not in "".join(traceback.format_exception(stopped.value, chain=True))


@pytest.mark.parametrize(
    ("host", "port", "tls", "says"),
    [
        ("api.test", 8443, True, "does not belong to api.test:8443"),
        ("b.test", 443, True, "does not belong to b.test:443"),
        ("x.api.test", 443, True, "does not belong"),
        ("api.test", 443, False, "clear text"),
    ],
)
def test_another_host_port_or_clear_text_gets_nothing(host: str, port: int, says: str, *, tls: bool) -> None:
    """INS-5, B121, B122: a redirect takes the placeholder along, and stops there."""
    with pytest.raises(MisdirectedError, match=says):
        vault(BEARER).swap(host, port, b"/", [(b"Authorization", b"Bearer " + STANDS)], tls=tls)


def test_the_same_without_a_placeholder_passes() -> None:
    """The neighbour: other credentials of the task's own travel as they are, to every host."""
    fields = [(b"Authorization", b"Bearer own"), (b"X", b"ghp_Fake")]
    for host, port, tls in ((*HOST, True), ("b.test", 443, True), ("api.test", 80, False)):
        assert vault(BEARER).swap(host, port, b"/?a", fields, tls=tls) == (b"/?a", fields)


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_what_signs_is_refused_where_it_would_fail(name: str) -> None:
    """B124: the key that signs is in no request; with its name known, a signed request is told why it cannot work."""
    held = Vault([Secret(name, (HOST,), BEARER, VALUE, STANDS)])
    signed = [(b"Authorization", b"AWS4-HMAC-SHA256 Credential=AKIAOTHER/2026, Signature=00")]
    with pytest.raises(MisdirectedError, match="a signature cannot be swapped: give the task credentials of its own"):
        held.swap(*HOST, b"/", signed, tls=True)
    with pytest.raises(MisdirectedError, match="a signature"):
        held.swap(*HOST, b"/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0", [], tls=True)
    assert held.swap("b.test", 443, b"/", signed, tls=True) == (b"/", signed)  # whose host it is not
    assert vault(BEARER).swap(*HOST, b"/", signed, tls=True) == (b"/", signed)  # another secret's


def test_no_representation_has_the_value() -> None:
    """JRN-5, INS-5: of a secret, of a vault, of a place."""
    secret = Secret("TOKEN", (HOST,), BEARER, VALUE, STANDS)
    for shown in (repr(secret), str(secret), repr([secret]), repr(Vault([secret])), f"{secret}"):
        assert VALUE.decode() not in shown


def test_answers_of_its_hosts_are_scrubbed() -> None:
    """INS-5, B118: and those of others, which never had it, are not."""
    held = vault(BEARER)
    cleaner = held.cleaner(*HOST)
    assert cleaner is not None
    assert cleaner.all(b"you sent " + VALUE) == b"you sent " + STANDS
    assert held.cleaner("b.test", 443) is None


OTHER = b"ghp_OtherOtherOther00003"


def alone(place: Place) -> Vault:
    """A vault with one secret at whose host no other key passes, and one without that."""
    fields = (b"authorization", b"x-key", b"?key")
    second = Secret("SECOND", (HOST,), Place(Where.HEADER, b"x-key"), VALUE[::-1], STANDS[::-1])
    return Vault([Secret("TOKEN", (HOST,), place, VALUE, STANDS, fields), second])


@pytest.mark.parametrize(
    ("target", "field", "says"),
    [
        (b"/", (b"Authorization", b"Bearer " + OTHER), "authorization"),
        (b"/", (b"authorization", OTHER), "authorization"),
        (b"/", (b"Authorization", b"Bearer " + OTHER + b", Bearer " + STANDS), "authorization"),
        (b"/", (b"Authorization", b"Negotiate " + STANDS), "authorization"),
        (b"/", (b"Authorization", basic(b"me:" + OTHER)), "authorization"),
        (b"/", (b"X-Key", OTHER), "x-key"),
        (b"/", (b"X-Key", STANDS + b"," + OTHER), "x-key"),
        (b"/?alt=sse&key=" + OTHER, (b"a", b"b"), "key"),
        (b"/?%6bey=" + OTHER, (b"a", b"b"), "key"),
    ],
)
def test_where_a_model_takes_a_key_nothing_but_stand_ins_passes(
    target: bytes, field: tuple[bytes, bytes], says: str
) -> None:
    """INS-8, INS-5: with somebody else's key what the task knows would lie in his account; the key is not repeated."""
    with pytest.raises(MisdirectedError, match=f"another one was sent there in {says}$") as caught:
        alone(BEARER).swap(*HOST, target, [field], tls=True)
    assert OTHER.decode() not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "field"),
    [
        (b"/", (b"Authorization", b"Bearer " + STANDS)),
        (b"/", (b"X-Key", STANDS[::-1])),
        (b"/", (b"X-Key", b" ")),
        (b"/?key=&keys=" + OTHER, (b"X-Keys", OTHER)),
    ],
)
def test_stand_ins_and_no_key_at_all_do(target: bytes, field: tuple[bytes, bytes]) -> None:
    """The neighbours: each secret of the host, an empty field, other fields; another host is none of its business."""
    alone(BEARER).swap(*HOST, target, [field], tls=True)
    alone(BEARER).swap("other.test", 443, b"/?key=x", [(b"x-key", OTHER)], tls=True)
