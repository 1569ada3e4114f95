"""tidegate.server.sinks in a whole server: what is set is in force, kept, and taken away whole."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.sinks.proxies import company_proxy
from tests.sinks.receivers import Bulk, Hook, Otlp
from tests.sinks.rig import authority
from tests.unit.server.kit import Front, policy, served, until
from tidegate.journal.sinks.definition import Definition, Keys
from tidegate.journal.sinks.keeping import Keeper
from tidegate.journal.sinks.sink import LATER, TAKEN, Outcome
from tidegate.model.errors import UsageError
from tidegate.model.question import NO_TERMS, Answer
from tidegate.runtime.state import write_private
from tidegate.server.background import in_thread
from tidegate.server.sinks import MOST

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.server.serve import Server


async def put(server: Server, definition: Definition, key: bytes | None = None, *, from_start: bool = False) -> None:
    """Set a sink."""
    await in_thread(lambda: server.sinks.put(definition, Keys(key), from_start=from_start))


def test_what_is_set_follows_from_now_on_and_after_a_restart(tmp_path: Path) -> None:
    """JRN-6: a new sink begins with the next line; the next server goes on with what was written while it was down."""
    with Hook() as hook:

        async def first(server: Server) -> int:
            await put(server, Definition("one", hook.url), hook.key)
            seq = server.log.append("net.blocked", "t", host="a.test:1")
            await until(lambda: hook.seqs == [seq])
            await until(lambda: server.sinks.shown()[0]["state"] == "up to date")
            return seq

        async def second(server: Server) -> None:
            seq = server.log.append("net.blocked", "t", host="b.test:1")
            await until(lambda: hook.seqs[-1:] == [seq])

        seq = served(tmp_path, first)
        served(tmp_path, second)
    assert hook.seqs == list(range(seq, seq + len(hook.seqs)))
    for name in ("one.json", "one.position"):
        assert os.stat(tmp_path / "state" / "sinks" / name).st_mode & 0o777 == 0o600
    assert hook.key.decode() not in (tmp_path / "state" / "sinks" / "one.json").read_text()
    assert os.stat(tmp_path / "state" / "keys" / "sink-one.key").st_mode & 0o777 == 0o600


def test_from_the_first_line_on(tmp_path: Path) -> None:
    """JRN-6: where it is asked for, all that the log has."""
    with Otlp() as otlp:

        async def go(server: Server) -> None:
            await put(server, Definition("one", otlp.url), from_start=True)
            await until(lambda: otlp.seqs[:1] == [1])

        served(tmp_path, go)


def test_a_key_stays_with_its_place(tmp_path: Path) -> None:
    """JRN-6: changed without a key the same place keeps it; another place is never sent it."""
    with Hook() as hook, Hook() as other:

        async def go(server: Server) -> None:
            await put(server, Definition("one", hook.url), hook.key)
            await put(server, Definition("one", hook.url, ("task.*",)))
            with pytest.raises(UsageError, match="needs a key"):
                await put(server, Definition("one", other.url))
            (shown,) = server.sinks.shown()
            assert shown["types"] == ["task.*"]
            seq = server.log.append("task.ended", "t", outcome="")
            await until(lambda: hook.seqs == [seq])

        served(tmp_path, go)
    assert other.got == []


def test_a_sink_that_is_removed_is_gone(tmp_path: Path) -> None:
    """JRN-6: with its position and its key; one that is not there is none."""
    with Hook() as hook:

        async def go(server: Server) -> None:
            await put(server, Definition("one", hook.url), hook.key)
            found = await in_thread(server.sinks.remove, "one")
            assert found is not None
            assert await in_thread(server.sinks.remove, "one") is None
            assert server.sinks.shown() == []

        served(tmp_path, go)
    assert os.listdir(tmp_path / "state" / "sinks") == []
    assert not (tmp_path / "state" / "keys" / "sink-one.key").exists()


def test_a_dead_receiver_is_said_and_holds_up_nothing(tmp_path: Path) -> None:
    """JRN-6: while it takes nothing lines are written as ever, the lag grows, and the server ends in time."""
    hook = Hook()
    with hook:
        pass  # nobody listens there any more

    async def go(server: Server) -> None:
        await put(server, Definition("one", hook.url), hook.key)
        for number in range(2000):
            assert server.log.append("net.blocked", "t", host=f"h{number}.test:1")
        await until(lambda: server.sinks.failing() == ["one"])
        (shown,) = server.sinks.shown()
        assert shown["lag"] >= 2000
        assert shown["error"] == "Connection refused"
        assert shown["host"] == "localhost"

    served(tmp_path, go)


def test_receivers_that_never_answer_hold_up_nobody_else(tmp_path: Path) -> None:
    """JRN-6, ASK-2: with as many sinks as can be, all in the middle of a message, a question is asked and answered."""
    with Hook() as hook:
        hook.gate.clear()

        async def go(server: Server) -> None:
            for number in range(MOST):
                await put(server, Definition(f"s{number}", hook.url), hook.key)
            server.log.append("net.blocked", "t", host="h.test:1")
            await until(lambda: len(hook.got) == MOST)
            front = await Front.open(server, tmp_path, rules=policy(ask=("a.test:80",)), ask="wait")
            server.presence.seen()
            asked = asyncio.ensure_future(front.asks("a.test:80"))
            await until(lambda: bool(server.desk.questions()))
            number = server.desk.questions()[0].id
            await server.answer(number, Answer.DENY, NO_TERMS, "test")
            assert b"403" in await asked
            assert len(server.sinks.shown()) == MOST

        served(tmp_path, go)


def test_what_was_said_is_forgotten_when_it_is_set_anew(tmp_path: Path) -> None:
    """JRN-6: gaps and refusals have been seen then; the position stays."""
    folder = tmp_path / "state" / "sinks"

    async def first(server: Server) -> None:
        await put(server, Definition("one", "otlp+http://127.0.0.1:1"))

    async def second(server: Server) -> None:
        assert server.sinks.failing() == ["one"]
        await put(server, Definition("one", "otlp+http://127.0.0.1:1", ("secret.*",)))
        (shown,) = server.sinks.shown()
        assert (shown["lost"], shown["gaps"], shown["set_aside"]) == (0, [], 0)
        assert shown["position"] >= 3

    served(tmp_path, first)
    keeper = Keeper(str(folder), "one", write_private)
    keeper.save(keeper.load()[0].replace(seq=3, hash="", lost=2, gaps=((1, 2),), aside=4, error="no"))
    served(tmp_path, second)


def test_a_receiver_that_never_answers_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """JRN-6, SRV-1: what is on its way is broken off when the server ends (kit.served: in ten seconds)."""
    with Hook() as hook:
        hook.gate.clear()

        async def go(server: Server) -> None:
            await put(server, Definition("one", hook.url), hook.key)
            server.log.append("net.blocked", "t", host="h.test:1")
            await until(lambda: bool(hook.got))

        served(tmp_path, go)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name":"other"}', '{"name":"../x","url":1}'])
def test_a_damaged_definition_is_said_and_left_out(tmp_path: Path, text: str) -> None:
    """JRN-6: the server starts, and says which file it is."""
    folder = tmp_path / "state" / "sinks"
    folder.mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    (folder / "one.json").write_text(text)
    warned: list[str] = []

    async def go(server: Server) -> list[dict[str, Any]]:
        return server.sinks.shown()

    assert served(tmp_path, go, warned=warned) == []
    assert "one.json" in warned[0]


def test_sinks_are_bounded(tmp_path: Path) -> None:
    """JRN-6: so many and no more."""
    with Otlp() as otlp:

        async def go(server: Server) -> None:
            for number in range(MOST):
                await put(server, Definition(f"s{number}", otlp.url))
            with pytest.raises(UsageError, match="already"):
                await put(server, Definition("more", otlp.url))

        served(tmp_path, go)
    assert len(json.dumps(otlp.ids)) >= 0


def test_a_test_is_no_line_of_the_log_and_moves_nothing(tmp_path: Path) -> None:
    """JRN-6: past the filters, marked, on a connection of its own; position, counts and log stay as they were."""
    with Hook() as hook:

        async def go(server: Server) -> None:
            await put(server, Definition("one", hook.url, ("task.*",)), hook.key)
            before = server.sinks.shown()
            found = await in_thread(server.sinks.test, "one")
            assert found is not None
            assert found[1] == Outcome(TAKEN, "it answers 204")
            assert server.sinks.shown() == before
            assert await in_thread(server.sinks.test, "two") is None

        served(tmp_path, go)
        (message,) = hook.got
    line = json.loads(message[3])
    assert (line["type"], line["seq"], line["sink"]) == ("sink.test", 0, "one")
    assert not {"prev", "seal"} & set(line)
    assert message[2]["Idempotency-Key"] == '"test-{0}/test-{0}"'.format(line["at"])
    assert "Tidegate-Signature" in message[2]
    assert "sink.test" not in (tmp_path / "state" / "log" / "actions.jsonl").read_text()


def test_what_refuses_the_record_itself_has_not_taken_it(tmp_path: Path) -> None:
    """JRN-6: an item of _bulk that is refused under a status of 200 is no success; the neighbour is."""
    with Bulk() as bulk:

        async def go(server: Server) -> None:
            await put(server, Definition("one", bulk.url), bulk.key)
            for refused in (False, True):
                bulk.poison = {0} if refused else set()
                found = await in_thread(server.sinks.test, "one")
                assert found is not None
                why = "an item is answered 400 (document_parsing_exception)"
                assert (found[1].state, found[1].why) == ((LATER, why) if refused else (TAKEN, "it answers 200"))

        served(tmp_path, go)


def test_a_test_that_is_never_answered_holds_up_neither_another_nor_the_end(tmp_path: Path) -> None:
    """JRN-6, SRV-1: one at a time; it is broken off when the server ends (kit.served: in ten seconds)."""
    with Hook() as hook:
        hook.gate.clear()

        async def go(server: Server) -> asyncio.Future[Any]:
            await put(server, Definition("one", hook.url), hook.key)
            first = asyncio.ensure_future(in_thread(server.sinks.test, "one"))
            await until(lambda: bool(hook.got))
            with pytest.raises(UsageError, match="being tried"):
                await in_thread(server.sinks.test, "one")
            return first

        first = served(tmp_path, go)
    assert first.cancelled() or first.result()[1] == Outcome(LATER, "the server stops")


def test_certificates_and_proxies_keep_their_keys_where_they_stay_what_they_are(tmp_path: Path) -> None:
    """JRN-6: a certificate's key and a proxy's password lie among the keys, and go when what they belong to changes."""
    certificate, key = authority().client["cert"], authority().client["cert_key"]
    with Otlp(authority().strict) as otlp, company_proxy(user="me", password="s3cret") as proxy:
        one = Definition("one", otlp.url, ca=authority().pem, cert=certificate, proxy=f"http://{proxy.name}")
        folder = tmp_path / "state" / "keys"

        def kept() -> dict[str, bytes]:
            return {path.name: path.read_bytes() for path in folder.glob("sink-*")}

        async def go(server: Server) -> None:
            def set_(definition: Definition, keys: Keys) -> None:
                server.sinks.put(definition, keys, from_start=False)

            with pytest.raises(UsageError, match="a client's key is missing"):
                await in_thread(set_, one, Keys(proxy=b"me:s3cret"))
            assert kept() == {}
            await in_thread(set_, one, Keys(client=key, proxy=b"me:s3cret"))
            (shown,) = server.sinks.shown()
            assert (shown["proxy"], shown["certificate"]) == (proxy.name, True)
            assert {path.stat().st_mode & 0o777 for path in folder.glob("sink-*")} == {0o600}
            await in_thread(set_, one.replace(kinds=("net.*",)), Keys())
            seq = server.log.append("net.blocked", "t", host="h.test:1")
            await until(lambda: otlp.seqs == [seq])
            assert kept() == {"sink-one.client": key, "sink-one.proxy": b"me:s3cret"}
            with pytest.raises(UsageError, match="a client's key is missing"):
                await in_thread(set_, one.replace(url="otlp+https://elsewhere.test"), Keys())
            await in_thread(set_, one.replace(proxy="http://127.0.0.1:9"), Keys())
            assert kept() == {"sink-one.client": key}
            await in_thread(set_, one.replace(cert="", proxy=""), Keys())
            assert kept() == {}

        served(tmp_path, go)
    assert all(b"CONNECT localhost:" in head for head in proxy.heads)
    definition = (tmp_path / "state" / "sinks" / "one.json").read_text()
    assert "PRIVATE" not in definition
    assert "s3cret" not in definition
