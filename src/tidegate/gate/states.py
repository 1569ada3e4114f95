"""The life of a client's connection as a table.

A connection begins in HEAD and is in exactly one stage. `TRANSITIONS` lists where each stage may lead; whatever
else would happen is a bug, closes the connection and is recorded as such.
"""

from __future__ import annotations

from tidegate.model.closed import ClosedNumber


class Stage(ClosedNumber):
    """Where a connection is."""

    HEAD = 0  # bytes of a request arrive
    ASKING = 1  # a person is asked
    RESOLVING = 2  # the name is looked up
    DIALING = 3  # the addresses are tried, or the upstream proxy is spoken to
    TUNNEL = 4  # bytes move both ways; the first ones are judged
    EXCHANGE = 5  # a plain HTTP request is under way
    REFUSING = 6  # the answer is sent; what still arrives is thrown away, for a moment
    CLOSED = 7


S = Stage
TRANSITIONS: tuple[tuple[Stage, ...], ...] = (
    (S.HEAD, S.ASKING, S.RESOLVING, S.DIALING, S.TUNNEL, S.EXCHANGE, S.REFUSING, S.CLOSED),  # from HEAD
    (S.RESOLVING, S.DIALING, S.TUNNEL, S.EXCHANGE, S.REFUSING, S.CLOSED),  # from ASKING
    (S.DIALING, S.TUNNEL, S.EXCHANGE, S.REFUSING, S.CLOSED),  # from RESOLVING
    (S.TUNNEL, S.EXCHANGE, S.REFUSING, S.CLOSED),  # from DIALING
    (S.REFUSING, S.CLOSED),  # from TUNNEL
    (S.HEAD, S.TUNNEL, S.REFUSING, S.CLOSED),  # from EXCHANGE
    (S.CLOSED,),  # from REFUSING
    (),  # from CLOSED
)
