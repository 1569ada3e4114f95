"""A real gRPC client and server, read inside TLS: unary, streams both ways, errors in trailers (INS-3)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import pytest
import trustme

from tests.unit.gate.inside import Inside, inside
from tidegate.model.rule import RuleLimits, only
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside"]


def upper(request: bytes, _context: grpc.ServicerContext) -> bytes:
    """Answer one with one."""
    return request.upper()


def each(requests: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
    """Answer each as it comes."""
    for request in requests:
        yield request.upper()


def fail(_request: bytes, context: grpc.ServicerContext) -> bytes:
    """Fail with words."""
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
    return b""


@pytest.fixture
def service() -> Iterator[tuple[int, str]]:
    """A gRPC server on this machine's loopback: its port and root."""
    authority = trustme.CA()
    leaf = authority.issue_cert("a.test")
    server = grpc.server(ThreadPoolExecutor(2))
    methods = {
        "Upper": grpc.unary_unary_rpc_method_handler(upper),
        "Each": grpc.stream_stream_rpc_method_handler(each),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Secret": grpc.unary_unary_rpc_method_handler(upper),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("lab.Service", methods),))
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(leaf.private_key_pem.bytes(), chain)]))
    server.start()
    yield port, authority.cert_pem.bytes().decode()
    server.stop(None).wait(5)


def test_grpc_with_trailers_and_streams(lab: Lab, inside: Start, service: tuple[int, str]) -> None:
    """INS-3, INS-6: every kind of call passes, errors keep their words, and a method of the service can be kept out."""
    port, roots = service
    lab.dns.set("a.test", A=["127.0.0.1"])
    paths = tuple(f"/lab.Service/{name}" for name in ("Upper", "Each", "Fail"))
    gate = inside(f"a.test:{port}", limit=RuleLimits(requests=only(methods=("POST",), paths=paths)), roots=roots)
    proxy = "http://{}:{}".format(*gate.gate.address)
    credentials = grpc.ssl_channel_credentials(gate.trusted.encode())
    with grpc.secure_channel(f"a.test:{port}", credentials, options=[("grpc.http_proxy", proxy)]) as channel:
        assert channel.unary_unary("/lab.Service/Upper")(b"hello" * 20_000, timeout=20) == b"HELLO" * 20_000
        assert list(channel.stream_stream("/lab.Service/Each")(iter([b"a", b"b"]), timeout=20)) == [b"A", b"B"]
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/lab.Service/Fail")(b"x", timeout=20)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "no such thing"
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/lab.Service/Secret")(b"x", timeout=20)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert [event.how for event in gate.gate.events(4)] == [How.INSPECTED] * 3 + [How.REFUSED]
