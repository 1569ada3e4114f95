"""What every sink keeps to, each with a real receiver on loopback (JRN-6)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.sinks.receivers import Web, until
from tests.sinks.rig import CONFIRMS, HTTP, KINDS, Log, Rig, receiver, rig, wall
from tidegate.journal.sinks import target
from tidegate.journal.sinks.follower import IN_A_ROW, TRIES
from tidegate.journal.sinks.record import trial
from tidegate.journal.sinks.sink import LATER, TAKEN, attempted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sinks.receivers import Receiver


def arrived(one: Receiver, wanted: list[int]) -> None:
    """Wait until all of these have arrived."""
    until(lambda: set(wanted) <= set(one.seqs), lambda: (sorted(set(wanted) - set(one.seqs)), one.faults))


def confirmed(follows: Rig, seq: int) -> None:
    """Wait until it knows that all up to here are there."""
    until(lambda: follows.follower.state.kept.seq >= seq, lambda: follows.follower.state)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_arrives_once_and_in_order(tmp_path: Path, kind: str) -> None:
    """JRN-6: lines from before and after the sink began arrive, each once, in order; a quiet sink says no error."""
    log = Log(tmp_path / "a")
    wanted = log.write(kind, 3)
    with receiver(kind, tmp_path) as one, rig(log, one) as follows:
        arrived(one, wanted)
        wanted += log.write(kind, 2)
        arrived(one, wanted)
        confirmed(follows, wanted[-1])
        assert one.seqs == wanted
        assert follows.follower.state.error == ""
        assert follows.follower.state.kept.lost == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_that_was_down_gets_all_when_it_is_back(tmp_path: Path, kind: str) -> None:
    """JRN-6: what was written while nobody listened arrives later; the error is said meanwhile, and gone afterwards."""
    log = Log(tmp_path / "a")
    one = receiver(kind, tmp_path)
    one.up()
    try:
        with rig(log, one) as follows:
            first = log.write(kind, 2)
            confirmed(follows, first[-1])
            one.down()
            wanted = log.write(kind, 2)
            until(lambda: follows.follower.state.error, lambda: follows.follower.state)
            assert follows.follower.state.failing_since > 0
            one.up()
            arrived(one, first + wanted)
            confirmed(follows, wanted[-1])
            until(lambda: not follows.follower.state.error, lambda: follows.follower.state)
    finally:
        one.down()


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_comes_back_goes_on_where_it_stopped(tmp_path: Path, kind: str) -> None:
    """JRN-6: what was confirmed is not sent again after a restart; what was written in between is sent."""
    log = Log(tmp_path / "a")
    with receiver(kind, tmp_path) as one, rig(log, one) as follows:
        wanted = log.write(kind, 2)
        confirmed(follows, wanted[-1])
        follows.stop()
        wanted += log.write(kind, 2)
        follows.start()
        arrived(one, wanted)
        assert one.seqs == wanted


@pytest.mark.parametrize("kind", CONFIRMS)
def test_a_reset_after_the_message_repeats_and_loses_nothing(tmp_path: Path, kind: str) -> None:
    """JRN-6: the receiver took a batch and its connection broke before it said so: it is sent again, with the same ids.

    Where the receiver can tell by the id (Elasticsearch, Jira), it is there once.
    """
    log = Log(tmp_path / "a")
    with receiver(kind, tmp_path) as one:
        one.faults.append("reset")
        wanted = log.write(kind, 3)
        with rig(log, one) as follows:
            arrived(one, wanted)
            confirmed(follows, wanted[-1])
        assert set(one.seqs) == set(wanted)
        assert len(set(one.ids)) == len(wanted)
        if kind in ("elasticsearch", "jira"):
            assert len(one.ids) == len(wanted)
        elif kind != "otlp":
            assert len(one.ids) > len(wanted)


@pytest.mark.parametrize("kind", CONFIRMS)
def test_a_connection_that_breaks_before_anything_was_taken(tmp_path: Path, kind: str) -> None:
    """JRN-6: a message that went into the void is sent again."""
    log = Log(tmp_path / "a")
    with receiver(kind, tmp_path) as one:
        one.faults += ["lost", "lost"]
        wanted = log.write(kind, 3)
        with rig(log, one):
            arrived(one, wanted)
        assert not one.faults


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (kind, status)
        for kind in HTTP
        for status in ("429", "500", "503", "401", "404", "302")
        if (kind, status) != ("jira", "404")
    ],
)
def test_what_may_pass_is_tried_again(tmp_path: Path, kind: str, status: str) -> None:
    """JRN-6: trouble of the receiver, and what only a person can mend, sets nothing aside; no redirect is followed.

    A comment on an issue that does not exist is the one thing that is its record's own fault.
    """
    log = Log(tmp_path / "a")
    with receiver(kind, tmp_path) as one:
        one.faults += [status] * 2
        wanted = log.write(kind, 2)
        with rig(log, one) as follows:
            arrived(one, wanted)
            confirmed(follows, wanted[-1])
            assert follows.follower.state.kept.aside == 0
        assert one.seqs == wanted
        assert isinstance(one, Web)
        assert not any(path.startswith("/elsewhere") for _, path, _, _ in one.got)


@pytest.mark.parametrize("kind", HTTP)
def test_an_answer_that_never_ends_is_cut_off(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """JRN-6: a body that drips for ever holds up its own sink for a bounded time, and no record is lost by it."""
    monkeypatch.setattr(target, "WHOLE_SECONDS", 0.5)
    log = Log(tmp_path / "a")
    wanted = log.write(kind, 2)
    with receiver(kind, tmp_path) as one:
        one.faults.append("slow")
        with rig(log, one) as follows:
            arrived(one, wanted)
            confirmed(follows, wanted[-1])
            until(lambda: not follows.follower.state.error, lambda: follows.follower.state)
        assert not one.faults


@pytest.mark.parametrize("kind", HTTP)
def test_retry_after_is_kept_to(tmp_path: Path, kind: str) -> None:
    """JRN-6: a receiver that asks for a second gets nothing before it is over; the pause of our own would be 50 ms."""
    log = Log(tmp_path / "a")
    log.write(kind, 1)
    with receiver(kind, tmp_path) as one:
        one.faults.append("429")
        follows = rig(log, one)
        pause = 0.0
        for _ in range(5):
            pause = follows.follower.step()
            if pause:
                break
        assert pause >= 1.0
        follows.sink.close()
        follows.follower._tail.close()


@pytest.mark.parametrize("kind", HTTP)
def test_a_record_that_is_refused_for_ever_is_set_aside(tmp_path: Path, kind: str) -> None:
    """JRN-6: one poisoned record is tried a bounded number of times, set aside and said; all others arrive."""
    log = Log(tmp_path / "a")
    wanted = log.write(kind, 7)
    poisoned = wanted.pop(3)
    with receiver(kind, tmp_path) as one:
        one.poison.add(poisoned)
        with rig(log, one) as follows:
            arrived(one, wanted)
            confirmed(follows, wanted[-1])
            assert follows.follower.state.kept.aside == 1
            assert f'"seq": {poisoned}' in follows.aside()
        assert sorted(set(one.seqs)) == wanted
        assert isinstance(one, Web)
        assert len(one.got) < 40 * TRIES


@pytest.mark.parametrize("kind", HTTP)
def test_a_receiver_that_refuses_everything_empties_no_log(tmp_path: Path, kind: str) -> None:
    """JRN-6: after so many refusals in a row nothing more is set aside; it goes on once the receiver does."""
    log = Log(tmp_path / "a")
    wanted = log.write(kind, IN_A_ROW + 10)
    with receiver(kind, tmp_path) as one:
        one.poison |= set(wanted)
        with rig(log, one) as follows:
            until(lambda: "takes nothing" in follows.follower.state.error, lambda: follows.follower.state)
            aside = follows.follower.state.kept.aside
            assert aside <= IN_A_ROW
            one.poison.clear()
            arrived(one, wanted[aside:])


@pytest.mark.parametrize("kind", ["webhook", "elasticsearch", "otlp"])
def test_a_batch_that_is_too_large_comes_in_parts(tmp_path: Path, kind: str) -> None:
    """JRN-6: 413 halves the batch until it fits; nothing is lost and nothing set aside."""
    log = Log(tmp_path / "a")
    wanted = log.write(kind, 40)
    with receiver(kind, tmp_path) as one:
        assert isinstance(one, Web)
        one.largest = 6000
        with rig(log, one) as follows:
            arrived(one, wanted)
            confirmed(follows, wanted[-1])
            assert follows.follower.state.kept.aside == 0
        assert one.seqs == wanted


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "jira"])
def test_a_removed_file_is_a_gap_that_is_said(tmp_path: Path, kind: str) -> None:
    """JRN-6: lines of a file that was removed before they were read come as one record with their range, counted.

    What comes before and behind it arrives.
    """
    log = Log(tmp_path / "a", max_bytes=1000)
    wanted = log.blocked(30)
    older = sorted(name for name in os.listdir(log.folder) if name.count(".") == 2)
    assert len(older) > 3
    first, last = int(older[1].split(".")[1]), int(older[2].split(".")[1]) - 1
    os.unlink(os.path.join(log.folder, older[1]))
    with receiver(kind, tmp_path) as one, rig(log, one) as follows:
        arrived(one, [seq for seq in wanted if not first <= seq <= last])
        confirmed(follows, wanted[-1])
        assert f"gap-{first}-{last}" in one.ids
        kept = follows.follower.state.kept
        assert (kept.lost, kept.gaps) == (last - first + 1, ((first, last),))


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_that_is_rotated_while_it_is_followed(tmp_path: Path, kind: str) -> None:
    """JRN-6: each line arrives once across many new files, those too that came while the receiver was away."""
    log = Log(tmp_path / "a", max_bytes=3000, kept=100)
    one = receiver(kind, tmp_path)
    one.up()
    try:
        with rig(log, one) as follows:
            wanted = log.write(kind, 12)
            arrived(one, wanted)
            one.down()
            wanted += log.write(kind, 12)
            one.up()
            wanted += log.write(kind, 12)
            arrived(one, wanted)
            confirmed(follows, wanted[-1])
            assert follows.follower.state.kept.lost == 0
        if kind != "syslog-udp":
            assert sorted(set(one.seqs)) == wanted
    finally:
        one.down()


ANSWERS = {
    "webhook": "it answers 204", "elasticsearch": "it answers 200", "otlp": "it answers 200",
    "jira": "it answers 200 to who signs in; there is no issue to comment on",
    "syslog-unix": "the kernel took it", "syslog-udp": "it was sent; over UDP nothing says whether it arrived",
    "syslog": "its kernel has acknowledged it; syslog itself confirms nothing",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_test_says_what_the_receiver_answered(tmp_path: Path, kind: str) -> None:
    """JRN-6: a marked record, which is never taken for a line of the log; where nobody is there, why."""
    one = receiver(kind, tmp_path)
    one.up()
    try:
        made = rig(Log(tmp_path / "a"), one).sink
        record = trial("siem", wall())
        outcome = attempted(made, [record])
        said = ANSWERS.get(kind) or ANSWERS[kind.rpartition("-")[0]]
        assert (outcome.state, outcome.why, outcome.refused, outcome.lost) == (TAKEN, said, {}, 0)
        (taken,) = until(lambda: one.ids)
        if kind.startswith("webhook"):
            assert taken.startswith("0-")
        else:
            assert taken == ("myself" if kind == "jira" else record.id)
        made.close()
    finally:
        one.down()
    if kind == "syslog-udp":
        return  # the kernel hears of a closed port after it has sent
    outcome = attempted(made, [record])
    missing = "No such file or directory" if kind == "syslog-unix" else "Connection refused"
    assert (outcome.state, outcome.why) == (LATER, missing)
