"""What the figures of one run must hold, as data; the numbers are those of the order the bench was built for.

A bound compares two medians of the same run, or one median with a number. Where either was not measured the bound is
neither met nor missed. Against squid and tinyproxy the variant counts that writes a line per connection, because
tidegate's journal is on; the variants without a log stand beside in the table. A tunnel is measured twice: with
64 bytes there and back, and closed as soon as it is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.context import DIRECT
from bench.measures.startup import BARE
from bench.sandboxes import BY_CAPTURE, SANDBOX_RUNTIME, TIDEGATE, WITHOUT_CAPTURE

if TYPE_CHECKING:
    from bench.results import Results


@dataclass(frozen=True)
class Bound:
    """`measure` of tidegate is at least (or at most) `factor` x `other`'s figure in `against`, or the number `factor`.

    `profile` names the profile that explains a miss; '' where none would.
    """

    text: str
    measure: str
    factor: float
    other: str = ""
    against: str = ""
    at_most: bool = False
    profile: str = ""

    def judge(self, results: Results) -> dict[str, Any]:
        """Return the bound with what was measured: value, limit, ratio and whether it holds (None: not measured)."""
        value = results.median(self.measure, TIDEGATE)
        base = results.median(self.against or self.measure, self.other) if self.other else 1.0
        found: dict[str, Any] = {"text": self.text, "value": value, "limit": None, "ratio": None, "met": None}
        found |= {"factor": self.factor, "other": self.other, "at_most": self.at_most, "profile": self.profile}
        if value is None or not base:
            return found
        limit = self.factor * base
        found["limit"] = limit
        found["ratio"] = value / base
        found["met"] = value <= limit if self.at_most else value >= limit
        return found


BOUNDS = (
    Bound("tunnels/s, 32 clients, at least 1.3 x squid", "tunnels_32", 1.3, "squid", profile="tunnels"),
    Bound("tunnels/s, 32 clients, at least 0.9 x tinyproxy", "tunnels_32", 0.9, "tinyproxy", profile="tunnels"),
    Bound("the same, closed at once, at least 1.3 x squid", "tunnels_32_empty", 1.3, "squid", profile="tunnels"),
    Bound(
        "the same, closed at once, at least 0.9 x tinyproxy", "tunnels_32_empty", 0.9, "tinyproxy", profile="tunnels"
    ),
    Bound("one-tunnel throughput up, at least 1.4 x squid", "up_1", 1.4, "squid", profile="up"),
    Bound("one-tunnel throughput down, at least 1.4 x squid", "down_1", 1.4, "squid", profile="down"),
    Bound("one-tunnel throughput up, at least half of direct", "up_1", 0.5, DIRECT, profile="up"),
    Bound("one-tunnel throughput down, at least half of direct", "down_1", 0.5, DIRECT, profile="down"),
    Bound(
        "from inside, tunnels/s, 32 clients, at least 15 x sandbox-runtime",
        *("inside_tunnels_32", 15, SANDBOX_RUNTIME),
        profile="tunnels",
    ),
    Bound(
        "the same, closed at once, at least 15 x sandbox-runtime",
        *("inside_tunnels_32_empty", 15, SANDBOX_RUNTIME),
        profile="tunnels",
    ),
    Bound("from inside, throughput up, at least 5 x sandbox-runtime", "inside_up_1", 5, SANDBOX_RUNTIME, profile="up"),
    Bound(
        "from inside, throughput down, at least 5 x sandbox-runtime",
        *("inside_down_1", 5, SANDBOX_RUNTIME),
        profile="down",
    ),
    Bound(
        "from inside, tunnels/s by CONNECT at most 1.3 x those by capture",
        *("inside_tunnels_32", 1.3, BY_CAPTURE),
        at_most=True,
        profile="tunnels",
    ),
    Bound(
        "the same, closed at once",
        *("inside_tunnels_32_empty", 1.3, BY_CAPTURE),
        at_most=True,
        profile="tunnels",
    ),
    Bound("decisions with 100,000 rules, at least half the rate of 10", "decide_100000", 0.5, TIDEGATE, "decide_10"),
    Bound("refusals/s at least 1.2 x tinyproxy", "refuse_32", 1.2, "tinyproxy", profile="refuse"),
    Bound("keep-alive requests/s at least 1.25 x squid", "get_32", 1.25, "squid", profile="get"),
    Bound(
        "read inside TLS: keep-alive HTTP/1.1 requests/s at least 1.2 x squid's ssl-bump",
        *("inspect_requests", 1.2, "squid"),
        profile="inspect",
    ),
    Bound("the same, at least 20 x mitmproxy", "inspect_requests", 20, "mitmproxy", profile="inspect"),
    Bound(
        "read inside TLS: new connections/s at least squid's", "inspect_connections", 1, "squid", profile="inspect_new"
    ),
    Bound(
        "read inside TLS: latency added at p50 at most 1.5 x squid's",
        *("inspect_added_p50", 1.5, "squid"),
        at_most=True,
        profile="inspect",
    ),
    Bound(
        "read inside TLS: memory of an open connection at most a quarter of mitmproxy's",
        *("inspect_bytes", 0.25, "mitmproxy"),
        at_most=True,
    ),
    Bound("the same of HTTP/2", "inspect_bytes_h2", 0.25, "mitmproxy", at_most=True),
    Bound("idle gate process, RSS, at most 15 MB", "idle_rss", 15, at_most=True),
    Bound("idle tunnel at most 2 KB", "tunnel_bytes", 2048, at_most=True),
    Bound(
        "run true at most a sixth of sandbox-runtime",
        "startup",
        1 / 6,
        SANDBOX_RUNTIME,
        at_most=True,
        profile="startup",
    ),
    Bound(
        "run true at most 1.5 x the same without capture",
        *("startup", 1.5, WITHOUT_CAPTURE),
        at_most=True,
        profile="startup",
    ),
    Bound(
        "processor time a connection, 1,000 living tasks, at most 1.5 x that with 10",
        *("server_cost_1000", 1.5, TIDEGATE, "server_cost_10"),
        at_most=True,
    ),
    Bound(
        "whose a connection is, with 10,000 sockets open, at most 2 x the time with 10",
        *("identity_10000", 2, TIDEGATE, "identity_10"),
        at_most=True,
    ),
    *(
        Bound(
            f"latency beside a task that floods ({what}), at most 2 x that beside one that only computes",
            *(f"flood_{kind}", 2, TIDEGATE, "flood_spin"),
            at_most=True,
        )
        for kind, what in (("refused", "refused"), ("literal", "captured"), ("names", "look-ups"), ("udp", "UDP"))
    ),
)


def judge_all(results: Results) -> list[dict[str, Any]]:
    """Return every bound with what was measured."""
    return [bound.judge(results) for bound in BOUNDS]


ORDER = (TIDEGATE, DIRECT, BARE)
"""Columns that come first in the table."""
