"""A value is put into its field, and nothing else of a body changes."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.inspect import body_fields
from tidegate.inspect.body_fields import FORM, JSON, MOST_PARTS, PARTS, FieldError, kind_of
from tidegate.inspect.secrets import Place, Secret, Where

VALUE, STANDS = b'ghp_Real"Re/l&e+l=0001', b'ghp_Fake"Fa/e&k+e=0002'


def secret(field: str, name: str = "KEY", stands: bytes = STANDS) -> Secret:
    """One of a field."""
    return Secret(name, (("a.test", 443),), Place(Where.BODY, field.encode()), VALUE, stands)


def put_values(kind: str, data: bytes, secrets: list[Secret]) -> bytes:
    """Whoever is said to be put is one whose value is there."""
    put: set[str] = set()
    made = body_fields.put_values(kind, data, secrets, put)
    assert bool(put) == (made != data)
    assert put <= {one.name for one in secrets}
    return made


def text(value: bytes) -> str:
    """As JSON."""
    return json.dumps(value.decode())


@pytest.mark.parametrize(
    ("kind", "is_"),
    [
        (b"application/json; charset=utf-8", JSON),
        (b"Application/Problem+JSON", JSON),
        (b"application/x-www-form-urlencoded", FORM),
        (b"multipart/form-data; boundary=x", PARTS),
        (b"text/plain", ""),
        (b"", ""),
    ],
)
def test_what_is_read_as_what(kind: bytes, is_: str) -> None:
    """INS-5: by its type."""
    assert kind_of(kind) == is_


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("key", '{"a": 1.50, "key" : %s,\n "b": [1e3, "\\u00e9x"]}'),
        ("auth.key", '{"key": "x", "auth": {"id": 1, "key": %s}}'),
        ("list.key", '{"list": [{"key": "no"}, {"key": %s}], "x": {}}'),
        ("key", '[{"other": {"key": "x"}}, {"key": %s}]'),
        ("key", '{"key": "Bearer %.0s' + '%s"}'),
    ],
)
def test_only_the_field_changes(field: str, body: str) -> None:
    """INS-5: numbers, spaces, order and escapes of everything else are as they were."""
    if "Bearer" in body:
        sent, expected = ('{"key": "Bearer ' + text(one)[1:-1] + '"}' for one in (STANDS, VALUE))
    else:
        sent, expected = body % text(STANDS), body % text(VALUE)
    assert put_values(JSON, sent.encode(), [secret(field)]) == expected.encode()


def test_however_it_is_escaped() -> None:
    """INS-5: a letter as an escape is the same letter."""
    sent = '{"k\\u0065y": "\\u0067' + text(STANDS)[2:-1].replace("/", "\\/") + '"}'
    assert json.loads(put_values(JSON, sent.encode(), [secret("key")])) == {"key": VALUE.decode()}


def test_a_form() -> None:
    """INS-5: encoded as forms are; other parameters as they were."""
    sent = b"a=%7e+b&client%5Fsecret=ghp_Fake%22Fa/e%26k%2Be%3D0002&flag&x="
    put = put_values(FORM, sent, [secret("client_secret")])
    assert put == b"a=%7e+b&client%5Fsecret=ghp_Real%22Re%2Fl%26e%2Bl%3D0001&flag&x="


WRONG = [
    (JSON, b'{"other": %s}', "sent in the field 'other'"),
    (JSON, b'{"key": {"key": %s}}', "sent in the field 'key.key'"),
    (JSON, b"{%s: 1}", "sent as a name"),
    (JSON, b'{"key": "x", "key": %s}', "a key twice"),
    (JSON, b"%s", "sent in the field ''"),
    (JSON, b'{"key": %s', "no JSON"),
]


@pytest.mark.parametrize(("kind", "body", "says"), WRONG)
def test_elsewhere_or_unclear_it_stops_the_request(kind: str, body: bytes, says: str) -> None:
    """INS-5: by the name of the secret."""
    plain = b"ghp_FakeFakeFakeFake0002"
    with pytest.raises(FieldError, match=says) as stopped:
        put_values(kind, body % (b'"' + plain + b'"'), [secret("key", stands=plain)])
    assert stopped.value.secret == "KEY"


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        (FORM, b"other=ghp_FakeFakeFakeFake0002", "the field 'other'"),
        (FORM, b"ghp%5fFakeFakeFakeFake0002", "as a name"),
        (PARTS, b"--x\r\n\r\nghp_FakeFakeFakeFake0002\r\n--x--", "in a multipart body"),
    ],
)
def test_in_other_bodies_likewise(kind: str, body: bytes, says: str) -> None:
    """INS-5."""
    with pytest.raises(FieldError, match=says):
        put_values(kind, body, [secret("key", stands=b"ghp_FakeFakeFakeFake0002")])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b'{"a": 1, "a": 2}'),
        (JSON, b'{"a\\n": 1, "a\\n": 2}'),
        (JSON, b"no json \\ at all"),
        (JSON, b""),
        (FORM, b"&&=&a"),
        (PARTS, b"--x--"),
    ],
)
def test_where_there_is_none_all_passes(kind: str, body: bytes) -> None:
    """The neighbour: whatever it is."""
    assert put_values(kind, body, [secret("key")]) == body


def test_two_secrets_of_one_host() -> None:
    """INS-5: each in its own field, and not in the other's."""
    one, two = secret("id", "ID", b"idididididid0001"), secret("key", "KEY", b"keykeykeykey0002")
    put = put_values(JSON, b'{"id": "idididididid0001", "key": "keykeykeykey0002"}', [one, two])
    assert json.loads(put) == {"id": VALUE.decode(), "key": VALUE.decode()}
    with pytest.raises(FieldError, match="'id'") as stopped:
        put_values(JSON, b'{"id": "keykeykeykey0002"}', [one, two])
    assert stopped.value.secret == "KEY"


def test_what_takes_long_to_read_is_bounded() -> None:
    """INS-5, GAT-5: four MiB of fields kept everybody from the gate for seconds; where none has one, all pass."""
    many = b"a=1&" * MOST_PARTS
    key = [secret("key", stands=b"ghp_FakeFakeFakeFake0002")]
    assert put_values(FORM, many, key) == many
    for more in (many + b"key=ghp_FakeFakeFakeFake0002", many + b"x=%41", b"x=" + b"%41" * (MOST_PARTS + 1)):
        with pytest.raises(FieldError, match="more than"):
            put_values(FORM, more, key)
    fitting = b"a=1&" * (MOST_PARTS - 10)
    assert put_values(FORM, fitting + b"x=%41&key=ghp_FakeFakeFakeFake0002", key).startswith(
        fitting + b"x=%41&key=ghp_Real"
    )
    row = b"[" + b"1," * MOST_PARTS + b'{"key": "%s"}]'
    assert put_values(JSON, row % b"none", key) == row % b"none"
    with pytest.raises(FieldError, match="more than"):
        put_values(JSON, row % key[0].placeholder, key)


def test_a_long_string_costs_little_more_than_itself() -> None:
    """GAT-5: to read a picture beside a secret took a hundred times its size."""
    body = b'{"picture": "' + b"a" * 1_000_000 + b'", "key": "ghp_FakeFakeFakeFake0002"}'
    key = [secret("key", stands=b"ghp_FakeFakeFakeFake0002")]
    tracemalloc.start()
    try:
        assert text(VALUE).encode() in put_values(JSON, body, key)
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5) | st.just(STANDS.decode()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)


@given(TREES, st.booleans())
def test_whatever_the_tree(tree: object, pretty: bool) -> None:
    """The invariant: the same tree with the value in the field, or a refusal where it is elsewhere; never in part."""
    data = json.dumps(tree, indent=2 if pretty else None, ensure_ascii=pretty).encode()
    wanted, elsewhere = replaced(tree, ())
    try:
        put = put_values(JSON, data, [secret("a.b")])
    except FieldError:
        assert elsewhere
    else:
        assert not elsewhere
        assert json.loads(put) == wanted


def replaced(tree: object, path: tuple[str, ...]) -> tuple[object, bool]:
    """The tree as it is to be, and whether the stand-in is anywhere else."""
    if tree == STANDS.decode():
        return (VALUE.decode(), False) if path == ("a", "b") else (tree, True)
    if isinstance(tree, list):
        made = [replaced(one, path) for one in tree]
        return [one for one, _ in made], any(bad for _, bad in made)
    if isinstance(tree, dict):
        pairs = {key: replaced(one, (*path, key)) for key, one in tree.items()}
        return {key: one for key, (one, _) in pairs.items()}, any(bad for _, bad in pairs.values())
    return tree, False
