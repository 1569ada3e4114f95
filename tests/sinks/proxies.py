"""An HTTP proxy on loopback for sinks to go through: the lab's, without the lab around it. It knows `localhost`."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.lab.dns import Table
from tests.lab.origins import Origin
from tests.lab.proxies import http_proxy

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def company_proxy(**options: Any) -> Iterator[Origin]:
    """Give a proxy that listens at `name`, and has the requests that it was sent in `heads`; options of http_proxy."""
    table = Table()
    table.set("localhost", [{"A": ["127.0.0.1"]}])
    origin = Origin(socket.create_server(("127.0.0.1", 0)), http_proxy(table), options)
    try:
        yield origin
    finally:
        origin.close()
