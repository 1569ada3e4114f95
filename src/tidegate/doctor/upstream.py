"""The proxies through which the gate itself goes out: whether they can be used, and whether they answer (GAT-8, ADR-5).

A connection is made to each and closed; nothing is asked of it.
"""

from __future__ import annotations

import socket

from tidegate.doctor.check import FAIL, OK, Check
from tidegate.gate.upstream import Proxy, upstream_from_environment
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 3.0
_AGAIN = "it looks names up again, after they were checked here (docs/threat-model.md)"


def check_upstream(environ: Mapping[str, str]) -> list[Check]:
    """Return a row for each proxy that the environment names; none where there is none."""
    try:
        config = upstream_from_environment(environ)
    except StartError as error:
        return [Check("upstream proxy", FAIL, error.what, error.fix)]
    if config is None:
        return []
    return [_answers(proxy) for proxy in dict.fromkeys((config.https, config.http)) if proxy is not None]


def _answers(proxy: Proxy) -> Check:
    name = f"upstream proxy {proxy}"
    try:
        socket.create_connection((proxy.host.text, proxy.port), SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error)
        return Check(name, FAIL, f"it does not answer: {why}", "start it, or unset the variable that names it")
    return Check(name, OK, _AGAIN)
