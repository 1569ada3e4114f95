"""Content codings, taken off an answer that has to be looked through (INS-5, B118; RFC 9110 section 8.4.1).

Rules of the file:

* Bytes are put in as they come and taken out a piece at a time, so memory is bounded whatever they grow to: what was
  put in, a piece for each coding, and the library's own window (32 KiB of zlib, 4 MiB of Brotli, 8 MiB of Zstandard:
  RFC 9659). What a sender has flushed comes out at once, which is how events stream.
* A few bytes fill a window, so those of all answers that are open have one room (`Windows`). Where half of it is taken,
  codings with large windows are asked for no more (`acceptable`).
* Brotli's library fills a whole window before it hands out the first byte, and fifty bytes are enough for that: so in
  Brotli a window of more than libraries set up (RFC 7932 allows four times as much) is refused, at its first byte.
* To take once is one step of each coding in a row, so that nobody else waits long: bytes that come to nothing (empty
  members, empty blocks) may be many, and pieces of them are b"".
* What grows beyond every measure is refused: `FREE` bytes, and `RATIO` for each byte that came, in every coding of a
  row. So are more members than `MEMBERS` and one for each `MEMBER_BYTES` that came: each costs as much as a thousand
  bytes. So is an end in the middle, and what stands behind the end.
* A coding that is not here is not asked for (`acceptable`), and an answer in it cannot be read.

Brotli and Zstandard are packages of the extra `inspect`; where one is absent, its coding is not here.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING

from tidegate.model.reason import Reason
from tidegate.wire.errors import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Protocol

    class Layer(Protocol):
        """One coding of one body."""

        pending: bool
        whole: bool
        members: int
        window: int

        def put(self, data: bytes) -> None:
            """Take bytes behind those that are not taken out yet."""

        def take(self) -> bytes:
            """Go one step on: return about a piece at most."""


PIECE = 1 << 16
FREE = 1 << 20
RATIO = 256
"""Bytes out for one in. Text shrinks to a tenth, logs to a fiftieth; deflate's most is 1032, the others have none."""
STEP = 1 << 14  # bytes that go in at once
_FIRST = 1 << 10  # of a member: what is behind its end comes out again, and is copied
MEMBERS = 1024
MEMBER_BYTES = 64  # a gzip member that says anything has 21, a Zstandard frame 10
MOST_CODINGS = 3  # in a row; more than one is hardly met
_NAMES = frozenset(
    (
        b"br",
        b"zstd",
        b"compress",
        b"x-compress",
        b"exi",
        b"pack200-gzip",
        b"dcb",
        b"dcz",
        b"aes128gcm",
        b"snappy",
        b"lz4",
    )
)
"""Codings that may not be here, of IANA's registry and of gRPC's servers."""
_WINDOW_LOG = 23  # 8 MiB, RFC 9659 section 2
BROTLI_BITS = 22  # 4 MiB, BROTLI_DEFAULT_WINDOW of its library: to fill one holds all others up for some milliseconds
_SMALL_WINDOWS = frozenset((b"gzip", b"x-gzip", b"deflate"))
ROOM = 1 << 29
"""Bytes of all windows: 128 answers in Brotli as servers set it up (4 MiB each), four times as many in Zstandard's."""


class Windows:
    """Room for the windows of what is being decompressed for one command of a task."""

    __slots__ = ("left", "room")

    def __init__(self, room: int = ROOM) -> None:
        self.room = self.left = room

    @property
    def scarce(self) -> bool:
        """Whether half of it is taken."""
        return self.left < self.room // 2


class _Zlib:
    """gzip (RFC 1952), also of several members, and deflate: of RFC 1950, or bare as some send it."""

    __slots__ = ("_engine", "_gzip", "_input", "_step", "members", "pending", "whole", "window")

    def __init__(self, *, gzip: bool) -> None:
        self._engine: Any = None
        self._gzip = gzip
        self._input = bytearray()
        self._step = _FIRST
        self.members = 0
        self.pending = False
        self.whole = True
        self.window = 0  # 32 KiB: as much as the buffers of its connection

    def put(self, data: bytes) -> None:
        self._input += data
        self.pending = True

    def take(self) -> bytes:
        if self._engine is None and not self._begin():
            self.pending = False
            return b""
        engine, waiting = self._engine, self._input
        part = waiting[: self._step]
        out: bytes = engine.decompress(part, PIECE)
        self.whole = engine.eof
        if engine.eof:
            del waiting[: len(part) - len(engine.unused_data)]
            self._engine = None
            self.pending = bool(waiting)
            if waiting and not self._gzip:
                raise _broken("deflate", "bytes stand behind its end")
        else:
            del waiting[: len(part) - len(engine.unconsumed_tail)]
            self._step = STEP
            self.pending = bool(waiting) or len(out) >= PIECE
        return out

    def _begin(self) -> bool:
        data = self._input
        if self._gzip:
            self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)
        else:
            self.whole = not data
            if len(data) < 2:
                return False
            # RFC 1950 section 2.2: the method is 8, and both bytes are a multiple of 31.
            wrapped = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
            self._engine = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
        self._step = _FIRST
        self.members += 1
        return True


class _Brotli:
    """Brotli (RFC 7932)."""

    __slots__ = ("_engine", "_input", "members", "pending", "whole", "window")

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._input = bytearray()
        self.members = 1
        self.pending = False
        self.whole = True
        self.window = 0

    def put(self, data: bytes) -> None:
        self._input += data
        self.pending = True
        if not self.window and self._input:
            self.window = 1 << brotli_bits(self._input[0])

    def take(self) -> bytes:
        engine, data = self._engine, b""
        if engine.can_accept_more_data():
            data = bytes(self._input[:STEP])
            del self._input[:STEP]
        out: bytes = engine.process(data, output_buffer_limit=PIECE)
        self.whole = engine.is_finished() and not self._input
        # That it could take more does not mean that no output waits: only an empty piece does.
        more = bool(self._input or out) or not engine.can_accept_more_data()
        self.pending = more and not self.whole
        return out


def brotli_bits(first: int) -> int:
    """Return the binary logarithm of the window that a stream begins with (RFC 7932 section 9.1)."""
    if not first & 1:
        return 16
    if more := first >> 1 & 7:
        return 17 + more
    more = first >> 4 & 7
    return 8 + more if more > 1 else 17


class _Zstd:
    """Zstandard (RFC 8878), also of several frames."""

    __slots__ = ("_engine", "_input", "_make", "_step", "members", "pending", "whole", "window")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._engine: Any = None
        self._input = bytearray()
        self._step = _FIRST
        self.members = 0
        self.pending = False
        self.whole = True
        self.window = 0

    def put(self, data: bytes) -> None:
        self._input += data
        self.pending = True
        self.window = 1 << _WINDOW_LOG

    def take(self) -> bytes:
        if self._engine is None:
            self._engine = self._make()
            self._step = _FIRST
            self.members += 1
        engine, data = self._engine, b""
        if engine.needs_input:
            data = bytes(self._input[: self._step])
            del self._input[: self._step]
            self._step = STEP
        out: bytes = engine.decompress(data, max_length=PIECE)
        self.whole = engine.eof
        if engine.eof:
            self._input[:0] = engine.unused_data
            self._engine = None
            self.pending = bool(self._input)
        else:
            self.pending = bool(self._input) or not engine.needs_input
        return out


def _found() -> tuple[dict[bytes, Callable[[], Layer]], tuple[type[Exception], ...]]:
    """Return what makes each coding that can be taken off here, and what they raise."""
    found: dict[bytes, Callable[[], Layer]] = {
        b"gzip": lambda: _Zlib(gzip=True),
        b"x-gzip": lambda: _Zlib(gzip=True),  # RFC 9110 section 8.4.1.3
        b"deflate": lambda: _Zlib(gzip=False),
    }
    errors: list[type[Exception]] = [zlib.error]
    brotli = _module("brotli")
    if brotli is not None and hasattr(brotli.Decompressor, "can_accept_more_data"):
        # From 1.2 on its output can be bounded.
        found[b"br"] = lambda: _Brotli(brotli.Decompressor())
        errors.append(brotli.error)
    zstd = _module("compression.zstd") or _module("backports.zstd")  # the standard library has it from 3.14 on
    if zstd is not None:
        options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        found[b"zstd"] = lambda: _Zstd(lambda: zstd.ZstdDecompressor(options=options))
        errors.append(zstd.ZstdError)
    return found, tuple(errors)


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


CODINGS, _ERRORS = _found()


def acceptable(values: Iterable[bytes], *, small: bool = False, brotli: bool = True) -> bytes:
    """Return the Accept-Encoding to send on in place of these: what of it can be taken off again.

    Where `small`, that is what needs no large window; not `brotli` leaves that out.
    """
    kept = []
    taken = _SMALL_WINDOWS if small else CODINGS if brotli else CODINGS.keys() - {b"br"}
    for member in b",".join(values).split(b","):
        coding, semicolon, weight = member.strip(b" \t").partition(b";")
        if coding.strip(b" \t").lower() in taken:
            kept.append(coding.strip(b" \t").lower() + semicolon + weight)
    return b", ".join(kept) or b"identity"


class Decoding:
    """One body with codings, named in the order in which they were applied.

    `members` are how many it may have, 0 for as many as a long answer has. Room of `windows` is given back when this
    is collected, as their memory is. `wide` is called where a window is too large to be read.
    """

    __slots__ = ("_came", "_held", "_layers", "_made", "_members", "_wide", "_windows")

    def __init__(
        self,
        codings: Sequence[bytes],
        members: int = 0,
        windows: Windows | None = None,
        wide: Callable[[], None] | None = None,
    ) -> None:
        """Begin.

        Raises:
            WireError: UPSTREAM_RESPONSE for one that cannot be taken off, or too many.
        """
        self._held = 0
        self._windows = windows
        self._wide = wide
        if len(codings) > MOST_CODINGS:
            raise WireError(Reason.UPSTREAM_RESPONSE, f"it has more than {MOST_CODINGS} content codings")
        unknown = next((one for one in codings if one not in CODINGS), None)
        if unknown is not None:  # what is no coding's name is not repeated: it may be a value
            named = f" {unknown.decode('ascii')!r}" if unknown in _NAMES else ""
            raise WireError(Reason.UPSTREAM_RESPONSE, f"its content coding{named} was not asked for")
        self._layers = [CODINGS[one]() for one in reversed(codings)]
        self._made = [0] * len(codings)
        self._came = 0
        self._members = members

    @property
    def pending(self) -> bool:
        """Whether there may be something to take."""
        return any(layer.pending for layer in self._layers)

    def put(self, data: bytes) -> None:
        """Take bytes as they came."""
        if data:
            self._came += len(data)
            self._layers[0].put(data)

    def take(self) -> bytes:
        """Go one step on and return about a piece at most; b"" also where more is pending.

        Raises:
            WireError: UPSTREAM_RESPONSE where it cannot be taken off, or grows beyond measure.
        """
        try:
            return self._pull(len(self._layers) - 1)
        except _ERRORS as error:
            raise _broken("the coding", type(error).__name__) from None

    def _pull(self, at: int) -> bytes:
        layer = self._layers[at]
        if at and not layer.pending and (more := self._pull(at - 1)):
            layer.put(more)
        if not layer.pending:
            return b""
        if isinstance(layer, _Brotli) and layer.window > 1 << BROTLI_BITS:
            if self._wide is not None:
                self._wide()
            raise WireError(Reason.UPSTREAM_RESPONSE, f"its Brotli window is larger than {1 << BROTLI_BITS - 20} MiB")
        if self._windows is not None and layer.window:
            self._hold(self._windows)
        out = layer.take()
        self._made[at] += len(out)
        if self._made[at] > FREE + RATIO * self._came:
            raise WireError(Reason.UPSTREAM_RESPONSE, "it expands beyond measure when it is decompressed")
        if layer.members > (self._members or MEMBERS + self._came // MEMBER_BYTES):
            raise _broken("the coding", "it has more members than anybody needs")
        return out

    def _hold(self, windows: Windows) -> None:
        wanted = sum(layer.window for layer in self._layers) - self._held
        if wanted > windows.left:
            raise WireError(Reason.OUT_OF_RESOURCES, "too many compressed answers are open at once")
        windows.left -= wanted
        self._held += wanted

    def __del__(self) -> None:
        if self._windows is not None:
            self._windows.left += self._held

    def end(self) -> None:
        """Take note that nothing more comes.

        Raises:
            WireError: UPSTREAM_RESPONSE where some is missing.
        """
        if not all(layer.whole for layer in self._layers):
            raise _broken("the coding", "it ends in the middle")


def _broken(what: str, why: str) -> WireError:
    return WireError(Reason.UPSTREAM_RESPONSE, f"its body cannot be decompressed ({what}: {why})")
