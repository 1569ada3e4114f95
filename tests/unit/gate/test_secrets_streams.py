"""Secrets over HTTP/2 with real peers: a site, httpx, curl and gRPC (INS-3, INS-5)."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import grpc
import httpx
import pytest
import trustme
from hyperframe.frame import GoAwayFrame

from tests.coded import coded
from tests.unit.gate.inside import Inside, inside
from tests.unit.gate.kit import wait
from tests.unit.gate.test_inner_streams import GET, Talk, site, talk
from tests.unit.gate.test_secrets_inside import BEARER, NONE, STANDS, TOKEN, VALUE
from tidegate.inspect.secrets import Place, Secret, Where
from tidegate.model.reason import Reason
from tidegate.model.verdict import How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from tests.h2_site import H2Site
    from tests.lab.api import Lab

    Start = Callable[..., Inside]

__all__ = ["inside", "site", "talk"]

FIELD = ("authorization", BEARER.partition(": ")[2])


def test_the_site_sees_the_value_and_the_task_never(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-5, B118: HTTP/2 on both sides, its echo clean, and a second stream of the same connection."""
    client, gate = talk(secrets=TOKEN, limit=NONE)
    for _ in range(2):
        head, body, _, reset = client.answer(client.ask([*GET, FIELD]))
        assert (head[":status"], reset) == ("200", False)
        assert f"authorization: Bearer {STANDS.decode()}".encode() in body
        assert VALUE not in body
    assert [dict(fields)["authorization"] for fields in site[0].requests] == [f"Bearer {VALUE.decode()}"] * 2
    assert [event.how for event in gate.gate.events(2)] == [How.INSPECTED, How.INSPECTED]


@pytest.mark.parametrize("kind", ["gzip", "deflate", "br", "zstd"])
def test_a_large_coded_answer_is_clean(talk: Any, site: tuple[H2Site, str], kind: str) -> None:
    """B118, GAT-5: a MiB with a value at each border of its frames, under a coding, through the windows."""
    text = b"".join(b"%d %b " % (number, VALUE) for number in range(35_000))
    fields = [(":status", "200"), ("content-encoding", kind), ("x-back", VALUE.decode())]
    site[0].answers["/big"] = (fields, coded(text, kind), [("x-end", VALUE.decode())])
    client, gate = talk(secrets=TOKEN, limit=NONE)
    for _ in range(2):
        number = client.ask([*GET[:3], (":path", "/big"), FIELD, ("accept-encoding", kind)])
        head, body, trailers, reset = client.answer(number)
        assert (head["x-back"], trailers, reset) == (STANDS.decode(), {"x-end": STANDS.decode()}, False)
        assert body == text.replace(VALUE, STANDS)
    assert [event.bytes_down >= len(text) for event in gate.gate.events(2)] == [True, True]


def test_a_misdirected_one_is_told_and_recorded(talk: Any, site: tuple[H2Site, str]) -> None:
    """INS-5, GAT-7: 403 on its stream; the site hears nothing of it, and the next stream passes."""
    client, gate = talk(secrets=TOKEN, limit=NONE)
    head, body, _, _ = client.answer(client.ask([*GET, ("x-key", STANDS.decode())]))
    assert (head[":status"], b"the secret TOKEN belongs in bearer" in body) == ("403", True)
    assert site[0].requests == []
    assert client.answer(client.ask(GET))[0][":status"] == "200"
    assert gate.gate.event().reason is Reason.SECRET_MISDIRECTED


SMUGGLED = [
    [*GET, ("host", "b.test")],
    [GET[0], GET[1], (":authority", "b.test"), GET[3]],
    [*GET, ("transfer-encoding", "chunked")],
    [*GET, ("connection", "authorization")],
    [*GET, ("content-length", "5")],
    [*GET, ("content-length", "0"), ("content-length", "0")],
    [*GET, ("x", "a\r\nAuthorization: Bearer y")],
    [*GET[:3], (":path", "/x HTTP/1.1\r\nX: y")],
    [*GET, (":path", "/y")],
    [("a", "b"), *GET],
]


@pytest.mark.parametrize("fields", SMUGGLED)
def test_games_with_fields_get_no_value_out(talk: Any, site: tuple[H2Site, str], fields: list[tuple[str, str]]) -> None:
    """INS-4, issue 6: two authorities, lengths, ends of lines, pseudo-fields twice or late: the site hears nothing."""
    client, _ = talk(secrets=TOKEN, limit=NONE)
    head, body, _, _ = client.answer(client.ask([*fields, FIELD]))
    assert VALUE not in body
    assert head.get(":status", "ended") in {"ended", "400", "421"}
    assert site[0].requests == []


def test_httpx_and_curl_over_http2(inside: Start, site: tuple[H2Site, str], tmp_path: Path) -> None:
    """INS-3: real clients: what they ask for compressed comes, read and clean."""
    gate = inside("a.test:443", roots=site[1], secrets=TOKEN, limit=NONE)
    site[0].answers["/z"] = ([(":status", "200"), ("content-encoding", "gzip")], coded(b"key " + VALUE, "gzip"), [])
    proxy = "http://{}:{}".format(*gate.gate.address)
    with httpx.Client(http2=True, verify=gate.context(), proxy=proxy) as client:
        got = client.get("https://a.test/z", headers=[FIELD])
        assert (got.http_version, got.content) == ("HTTP/2", b"key " + STANDS)
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    bundle = tmp_path / "roots.pem"
    bundle.write_text(gate.trusted, encoding="ascii")
    done = subprocess.run(
        [curl, "-sS", "--http2", "--compressed", "--cacert", str(bundle), "-x", proxy, "-H", BEARER,
         "-w", "%{http_version}", "https://a.test/z"], capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"key " + STANDS + b"2"), done.stderr
    assert [dict(fields)["authorization"] for fields in site[0].requests] == [f"Bearer {VALUE.decode()}"] * 2


def told(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Answer with the metadata, in the message and in the trailers."""
    found = dict(context.invocation_metadata())
    token = str(found.get("authorization", ""))
    context.set_trailing_metadata((("x-token", token),))
    return request + token.encode()


@pytest.fixture
def service() -> Iterator[tuple[int, str]]:
    """A gRPC server on this machine's loopback: its port and root."""
    authority = trustme.CA()
    leaf = authority.issue_cert("a.test")
    server = grpc.server(ThreadPoolExecutor(2), compression=grpc.Compression.Gzip)
    handlers = {"Told": grpc.unary_unary_rpc_method_handler(told)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("lab.Service", handlers),))
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(leaf.private_key_pem.bytes(), chain)]))
    server.start()
    yield port, authority.cert_pem.bytes().decode()
    server.stop(None).wait(5)


def test_grpc_with_a_token(lab: Lab, inside: Start, service: tuple[int, str]) -> None:
    """INS-3, INS-5: of a server that always compresses; messages and trailers are clean, errors have words."""
    port, roots = service
    lab.dns.set("a.test", A=["127.0.0.1"])
    token = (Secret("TOKEN", (("a.test", port),), Place(Where.BEARER), VALUE, STANDS),)
    gate = inside(f"a.test:{port}", roots=roots, secrets=token, limit=NONE)
    proxy = "http://{}:{}".format(*gate.gate.address)
    credentials = grpc.ssl_channel_credentials(gate.trusted.encode())
    with grpc.secure_channel(f"a.test:{port}", credentials, options=[("grpc.http_proxy", proxy)]) as channel:
        call = channel.unary_unary("/lab.Service/Told")
        sent = b"z" * 20_000
        got, told_of = call.with_call(sent, metadata=[FIELD], timeout=20)
        assert got == sent + b"Bearer " + STANDS
        assert dict(told_of.trailing_metadata())["x-token"] == f"Bearer {STANDS.decode()}"
        with pytest.raises(grpc.RpcError) as caught:
            call(b"x", metadata=[("x-token", STANDS.decode())], timeout=20)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "the secret TOKEN belongs in bearer" in caught.value.details()
        assert VALUE not in str(caught.value).encode()


def test_a_client_that_cuts_its_answers_short_does_not_stop_the_others(talk: Any, site: tuple[H2Site, str]) -> None:
    """GAT-5: answers that are reset half-way, under a coding; the connection serves on to the end."""
    text = bytes(range(256)) * 4000
    site[0].answers["/big"] = ([(":status", "200"), ("content-encoding", "gzip")], coded(text, "gzip"), [])
    client: Talk = talk(secrets=TOKEN, limit=NONE)[0]
    for _ in range(30):
        number = client.ask([*GET[:3], (":path", "/big"), FIELD])
        client.until(lambda event, number=number: getattr(event, "stream_id", 0) == number)
        client.conn.reset_stream(number)
        client.flush()
    number = client.ask([*GET[:3], (":path", "/big"), FIELD])
    assert client.answer(number)[1] == text


@pytest.mark.parametrize("kind", ["", "zstd"])
def test_an_answer_of_a_site_that_leaves_at_once_is_whole(talk: Any, site: tuple[H2Site, str], kind: str) -> None:
    """RFC 9113 section 6.8: it has answered to the end and closed; the client takes what waits when it reads."""
    text = b"".join(b"%06d%s\n" % (number, b"-" * 57) for number in range(3000 if not kind else 40_000))
    field = [("content-encoding", kind)] if kind else []
    site[0].answers["/big"] = ([(":status", "200"), *field], coded(text, kind) if kind else text, [])
    site[0].leaves = True
    client, gate = talk(secrets=TOKEN, limit=NONE)
    client.conn._frame_dispatch_table[GoAwayFrame] = lambda _frame: ([], [])  # the library takes it for the end
    number = client.ask([*GET[:3], (":path", "/big"), FIELD, ("accept-encoding", kind or "identity")])
    wait(lambda: len(site[0].bodies) == 1)
    assert client.answer(number)[1] == text
    assert gate.gate.event().reason is Reason.ALLOWED
