"""A secret in a field of a body: JSON or a form, read strictly, with nothing changed but that field (INS-5).

Rules of the file:

* The value is put into the bytes as they came: numbers, spaces and the order of keys stay as they were.
* A stand-in in another field, or in a name, stops the request, and so does one in a body that readers could read
  differently. A body in which none can be passes as it is, whatever else it is.
* A body is read at once, in which nobody else is served: of one with more parts than any that has a secret, a stand-in
  stops the request, and a form that hides as many in escapes does.

Names: of a form, the parameter's; of JSON, keys from the outermost on with dots between (`auth.token`). Lists do not
count: `keys.token` is met in each object of the list `keys`.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote_plus, unquote_to_bytes

from tidegate.inspect import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.inspect.secrets import Secret

JSON, FORM, PARTS = "json", "form", "parts"
MOST_PARTS = 50_000  # values of JSON, fields of a form, escapes of a form
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]', re.DOTALL)  # possessive: it keeps no way back


class FieldError(ValueError):
    """A stand-in is where it does not belong; `secret` is the name, the text says where."""

    def __init__(self, secret: str, why: str) -> None:
        super().__init__(why)
        self.secret = secret


def kind_of(content_type: bytes) -> str:
    """Return what a body of this type is read as, '' where it is not."""
    kind = content_type.partition(b";")[0].strip().lower()
    if kind == b"application/json" or kind.endswith(b"+json"):
        return JSON
    if kind == b"application/x-www-form-urlencoded":
        return FORM
    return PARTS if kind.startswith(b"multipart/") else ""


def put_values(kind: str, data: bytes, secrets: Sequence[Secret], put: set[str]) -> bytes:
    """Return the body that travels on; the names of those whose values are in it go into `put`.

    Raises:
        FieldError: nothing of it may be sent.
    """
    if kind == JSON:
        return _json(data, secrets, put)
    if kind == FORM:
        return _form(data, secrets, put)
    for secret in secrets:
        if secret.placeholder in data:
            raise FieldError(secret.name, "and nothing is swapped in a multipart body: send JSON or a form")
    return data


def _form(data: bytes, secrets: Sequence[Secret], put: set[str]) -> bytes:
    if b"%" not in data and not any(secret.placeholder in data for secret in secrets):
        return data
    if data.count(b"&") >= MOST_PARTS or data.count(b"%") > MOST_PARTS:
        raise FieldError(secrets[0].name, f"and a form of more than {MOST_PARTS} fields or escapes is not read")
    swapped = []
    for one in data.split(b"&"):
        name, equals, value = one.partition(b"=")
        named, said = _unquoted(name), _unquoted(value)
        for secret in secrets:
            if secret.placeholder in named:
                raise FieldError(secret.name, "and was sent as a name")
            if secret.placeholder not in said:
                continue
            if named != secret.place.name:
                raise FieldError(secret.name, f"and was sent in the field {_shown(named.decode('latin-1'))}")
            said = said.replace(secret.placeholder, secret.value)
            value = quote_plus(said).encode("ascii")
            put.add(secret.name)
        swapped.append(name + equals + value)
    return b"&".join(swapped)


def _unquoted(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def _json(data: bytes, secrets: Sequence[Secret], put: set[str]) -> bytes:
    if b"\\" not in data and not any(secret.placeholder in data for secret in secrets):
        return data
    try:
        strict_json.read(data, MOST_PARTS)
    except strict_json.UnclearError as error:
        found = [secret for secret in secrets if secret.placeholder in data]
        if found:
            raise FieldError(found[0].name, f"and {error}") from None
        return data  # what an escape may hide in it is worth nothing
    text = data.decode()
    placeholders = [secret.placeholder.decode("ascii") for secret in secrets]
    parts: list[str] = []
    at = 0
    for start, end, path, key in _strings(text):
        raw = text[start:end]
        if "\\" not in raw and not any(one in raw for one in placeholders):
            continue
        said = json.loads(raw)
        swapped = said
        for secret, placeholder in zip(secrets, placeholders, strict=True):
            if placeholder not in said:
                continue
            if key:
                raise FieldError(secret.name, "and was sent as a name")
            named = ".".join(map(json.loads, path))
            if named != secret.place.name.decode("ascii"):
                raise FieldError(secret.name, f"and was sent in the field {_shown(named)}")
            swapped = swapped.replace(placeholder, secret.value.decode("ascii"))
            put.add(secret.name)
        if swapped is not said:
            parts += (text[at:start], json.dumps(swapped))
            at = end
    return "".join((*parts, text[at:])).encode()


def _strings(text: str) -> Iterator[tuple[int, int, list[str], bool]]:
    """Yield each string of a valid text: where it begins and ends, its path as it is now, and whether it is a key."""
    path: list[str] = []  # the key in each open object, as it is written
    inside: list[bool] = []  # whether each open container is an object
    key = False  # a key comes next
    for token in _TOKEN.finditer(text):
        sign = token[0][0]
        if sign in "{[":
            inside.append(sign == "{")
            key = sign == "{"
            if key:
                path.append('""')
        elif sign in "}]":
            if inside.pop():
                path.pop()
            key = False
        elif sign == ",":
            key = inside[-1]
        elif sign == ":":
            key = False
        else:
            yield token.start(), token.end(), path, key
            if key:
                path[-1] = token[0]


def _shown(name: str) -> str:
    return ascii(name[:40])
