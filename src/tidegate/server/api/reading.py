"""Bytes of a request to values, strictly.

Rules of the file: a body is bounded before it is kept, is `application/json` in UTF-8, holds no name twice and no name
that is not known; a query is held to the same. What is wrong is named with its place (`$.hosts[2]`) and, for a name,
the nearest that is known. Sources: RFC 8259; RFC 9110 sections 8.3 and 15.5.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from urllib.parse import parse_qsl

import msgspec

from tidegate.server.api.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

BODY_SECONDS: Final = 20.0
SMALL_BODY: Final = 64 * 1024
MAX_QUERY: Final = 4096

_T = TypeVar("_T", bound=msgspec.Struct)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `(?P<place>.*)`)?\Z", re.DOTALL)
_AT = re.compile(r"(?P<what>.*) - at `(?P<place>.*)`\Z", re.DOTALL)


async def read_body(headers: Mapping[str, str], chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """Return the whole body, at most `limit` bytes, that came within `BODY_SECONDS`.

    Raises:
        ApiError: 413 where it is larger or says so, 415 for another media type, 400 where it stops coming.
    """
    content_type(headers.get("content-type", ""))
    if headers.get("content-encoding", "identity") != "identity":
        raise ApiError(415, "the body is compressed", fix="send it as it is")
    said = headers.get("content-length", "")
    if said.isdigit() and int(said[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in chunks:
                if len(body) + len(chunk) > limit:
                    raise _too_large(limit)
                body += chunk
    except TimeoutError:
        raise ApiError(400, f"the body did not come within {BODY_SECONDS:.0f} seconds") from None
    return bytes(body)


def _too_large(limit: int) -> ApiError:
    # The rest of the body is not read, so the connection cannot be used again.
    return ApiError(413, f"the body is larger than {limit} bytes", headers={"Connection": "close"})


def content_type(value: str) -> None:
    """Check that a body is JSON.

    Raises:
        ApiError: 415 for another type, or another charset than UTF-8.
    """
    kind, _, parameters = value.partition(";")
    good = kind.strip().lower() == "application/json"
    for parameter in filter(None, (part.strip().lower() for part in parameters.split(";"))):
        good = good and parameter in ("charset=utf-8", 'charset="utf-8"')
    if not good:
        said = f"the body is {value[:60]!a}" if value else "the body has no Content-Type"
        raise ApiError(415, f"{said}, not JSON", fix="send Content-Type: application/json")


def decode(body: bytes, kind: type[_T]) -> _T:
    """Return the body as a value of `kind`.

    Raises:
        ApiError: 400, with the place at fault.
    """
    try:
        json.loads(body, object_pairs_hook=_no_name_twice, parse_constant=_no_constant)
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        _refuse(error, kind, "the body")
    except (ValueError, RecursionError) as error:  # msgspec.DecodeError and json's are ValueErrors
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ApiError(400, f"the body is not JSON: {why}") from None


def parse_query(raw: bytes, kind: type[_T]) -> _T:
    """Return the query string as a value of `kind`; numbers and booleans are written as in JSON.

    Raises:
        ApiError: 400, naming the parameter at fault.
    """
    if len(raw) > MAX_QUERY:
        raise ApiError(400, f"the query is longer than {MAX_QUERY} bytes")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict", max_num_fields=20
        )
    except ValueError:
        raise ApiError(400, "the query is not NAME=VALUE&NAME=VALUE in percent-encoded UTF-8") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise ApiError(400, f"the query has {name[:60]!r} twice")
        found[name] = value
    try:
        query = msgspec.convert(found, type=kind, strict=False)
    except msgspec.ValidationError as error:
        _refuse(error, kind, "the query")
    for name, value in found.items():
        if getattr(query, name) is None:  # msgspec takes the word null for a parameter that was left out
            fix = "leave it out"
            raise ApiError(
                400, f"the query is not as expected at $.{name}: {value!r} is no value", fix=fix, code="invalid"
            )
    return query


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ApiError(400, f"the body has the name {twice[:60]!r} twice in one object")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _refuse(error: msgspec.ValidationError, kind: type[msgspec.Struct], where: str) -> NoReturn:
    """Turn what msgspec found into the house's words."""
    text = str(error)
    unknown = _UNKNOWN.match(text)
    if unknown:
        name, place = unknown["name"], unknown["place"] or "$"
        # Only the outermost object has fields of its own in this API; below it are lists and settings.
        near = difflib.get_close_matches(name, kind.__struct_encode_fields__, 1)
        known = ", ".join(kind.__struct_encode_fields__) or "none"
        fix = f"did you mean {near[0]!r}?" if near else f"known here: {known}"
        raise ApiError(400, f"{where} has a name that is not known: {name[:60]!r} at {place}", fix=fix, code="unknown")
    placed = _AT.match(text)
    what, place = (placed["what"], placed["place"]) if placed else (text, "$")
    raise ApiError(400, f"{where} is not as expected at {place}: {what.replace('`', '')}", code="invalid")
