"""What every store must do (SRV-4). A store passes when all of these do, called with two openings of the same place.

A new store gets a line in tests/state/test_conformance.py and nothing here changes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from tidegate.model.question import NO_TERMS, Answer, AnswerRecord, FolderKey, GrantRecord, Terms
from tidegate.model.verdict import Phase
from tidegate.state.settings import SettingError
from tidegate.state.store import TaskEnd, TaskRecord, Token, Trust

if TYPE_CHECKING:
    from tidegate.state.store import Store

FOLDER = FolderKey("/w", 1, 2)


def task(name: str, at: float = 1.0, **more: object) -> TaskRecord:
    """Return a task."""
    return TaskRecord(name, FOLDER, at, b'{"rules": []}').replace(**more)


def answer(number: int, kind: Answer, host: str = "a.test", *, name: str = "t1", **more: object) -> AnswerRecord:
    """Return an answer."""
    record = AnswerRecord(number, name, FOLDER, host, 443, Phase.RUNTIME, kind, NO_TERMS, "alice", 5.0)
    return record.replace(**more)


def tasks_come_back_whole(one: Store, other: Store) -> None:
    """Every field of a task, bytes that are no UTF-8 and large inodes too, is what it was, in another process too."""
    full = TaskRecord(
        "t1", FolderKey("/w\udcff \n", 2**64 - 1, 2**64 - 2), 1.5, b"\x00\xff", "näme", ("sh", "-c", "\udcfe"),
        Phase.INSTALL, 60.0, "netns", "gate", "alice", 77, None, "", b"\xfe",
    )  # fmt: skip
    one.create_task(full)
    assert other.task("t1") == full
    assert other.task("t2") is None
    with pytest.raises(ValueError, match="t1"):
        other.create_task(task("t1"))


def uids_are_leased_oldest_free_first(one: Store, other: Store) -> None:
    """New ones by number, then the one that has been free for longest; each to one task, over restarts (HLD-3)."""
    assert [one.lease_uid("t1", 1.0, 100, 102), other.lease_uid("t2", 2.0, 100, 102)] == [100, 101]
    assert one.lease_uid("t3", 3.0, 100, 102, {102}) is None
    assert one.lease_uid("t3", 3.0, 100, 102) == 102
    assert other.lease_uid("t4", 4.0, 100, 102) is None
    assert [(lease.uid, lease.task) for lease in other.uid_leases()] == [(100, "t1"), (101, "t2"), (102, "t3")]
    assert one.release_uid(101, 5.0)
    assert other.release_uid(100, 6.0)
    assert not one.release_uid(100, 7.0)
    assert not one.release_uid(99, 7.0)
    assert [other.lease_uid("t5", 8.0, 100, 102), one.lease_uid("t6", 8.0, 100, 102)] == [101, 100]


def many_lease_at_once_and_none_twice(one: Store, other: Store) -> None:
    """Threads over two openings get a uid each (HLD-3)."""
    found: list[int | None] = []
    threads = [
        threading.Thread(target=lambda store=store: found.append(store.lease_uid("t", 1.0, 1, 40)))
        for store in [one, other] * 10
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(uid for uid in found if uid) == list(range(1, 21))


def tasks_are_listed_newest_first(one: Store, other: Store) -> None:
    """By pages, living or ended; tasks of the same moment are all listed, once."""
    for index in range(7):
        one.create_task(task(f"t{index}", at=float(index // 2)))
    assert one.end_task("t3", 9.0, "exited 0", 12, 5)
    assert not one.end_task("t3", 10.0, "again")
    assert not one.end_task("t9", 10.0, "never was")
    assert [record.id for record in other.tasks()] == ["t6", "t5", "t4", "t3", "t2", "t1", "t0"]
    assert [record.id for record in other.tasks(limit=2, before="t5")] == ["t4", "t3"]
    assert [record.id for record in other.tasks(living=False)] == ["t3"]
    assert "t3" not in [record.id for record in other.tasks(living=True)]
    assert other.tasks(before="no such task") == ()
    ended = other.task("t3")
    assert ended is not None
    assert (ended.ended_at, ended.outcome, ended.connections, ended.refused) == (9.0, "exited 0", 12, 5)


def many_tasks_end_at_once(one: Store, other: Store) -> None:
    """SRV-4: each as it would alone; those that had ended before, or never were, are not among those that did."""
    for index in range(5):
        one.create_task(task(f"t{index}"))
        one.save_answer(answer(index + 1, Answer.TASK, name=f"t{index}"))
    one.end_task("t3", 2.0, "before", 1, 1)
    assert one.end_tasks(()) == ()
    ends = [TaskEnd(name, 9.0, f"of {name}", 7, 2) for name in ("t0", "t1", "t3", "t9", "t0")]
    assert one.end_tasks(ends) == ("t0", "t1")
    assert [record.id for record in other.tasks(living=True)] == ["t4", "t2"]
    for name, outcome, connections in (("t0", "of t0", 7), ("t3", "before", 1)):
        ended = other.task(name)
        assert ended is not None
        assert (ended.outcome, ended.connections) == (outcome, connections)
    assert [len(other.grants(f"t{index}")) for index in range(5)] == [0, 0, 1, 0, 1]


def living_tasks_change(one: Store, other: Store) -> None:
    """Phase and wait of a living task change; its policy never does, nor does anything of an ended one (POL-8)."""
    one.create_task(task("t1"))
    changed = one.change_task("t1", phase=Phase.INSTALL, wait_seconds=60.0, operator=b"{}")
    assert changed == other.task("t1")
    assert changed is not None
    assert (changed.phase, changed.wait_seconds, changed.operator) == (Phase.INSTALL, 60.0, b"{}")
    with pytest.raises(TypeError):
        one.change_task("t1", policy=b"{}")
    one.end_task("t1", 2.0, "")
    assert one.change_task("t1", wait_seconds=70.0) is None
    assert one.change_task("t9", wait_seconds=70.0) is None


def question_numbers_are_never_given_twice(one: Store, other: Store) -> None:
    """Two processes and many threads draw numbers, and all are different."""
    drawn: list[int] = []

    def draw(store: Store) -> None:
        drawn.extend([store.next_question_id() for _ in range(150)])

    threads = [threading.Thread(target=draw, args=(store,)) for store in (one, other, one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(drawn)) == len(drawn) == 600
    assert min(drawn) >= 1


def answers_are_kept_with_what_they_mean(one: Store, other: Store) -> None:
    """ASK-2, ASK-7: once leaves nothing behind, the others a grant, remember a rule too; the latest grant counts."""
    one.create_task(task("t1"))
    until = Terms(until=99.5, connections=3, bytes=2**40)
    records = [
        answer(1, Answer.ALLOW, "once.test"),
        answer(2, Answer.DENY, "no.test"),
        answer(3, Answer.ALLOW, "until.test", terms=until),
        answer(4, Answer.TASK),
        answer(5, Answer.DENY_TASK, "never.test"),
        answer(6, Answer.DENY_TASK),
    ]
    for record in records:
        assert one.save_answer(record) is None
    rule = one.save_answer(answer(7, Answer.REMEMBER, "keep.test"))
    assert rule is not None
    assert (rule.folder, rule.host, rule.port, rule.phase) == (FOLDER, "keep.test", 443, Phase.RUNTIME)
    assert (rule.by, rule.at, rule.question) == ("alice", 5.0, 7)
    assert other.answers("t1") == (*records, answer(7, Answer.REMEMBER, "keep.test"))
    assert other.grants("t1") == (
        GrantRecord(3, "t1", "until.test", 443, Phase.RUNTIME, Answer.ALLOW, until, "alice"),
        GrantRecord(5, "t1", "never.test", 443, Phase.RUNTIME, Answer.DENY_TASK, NO_TERMS, "alice"),
        GrantRecord(6, "t1", "a.test", 443, Phase.RUNTIME, Answer.DENY_TASK, NO_TERMS, "alice"),
        GrantRecord(7, "t1", "keep.test", 443, Phase.RUNTIME, Answer.REMEMBER, NO_TERMS, "alice"),
    )
    one.end_task("t1", 9.0, "")
    assert other.grants("t1") == ()
    assert len(other.rules()) == 1


def an_answer_is_taken_back_whole(one: Store, other: Store) -> None:
    """JRN-5: what was not marked as noted is named, also to another process; taken back it leaves nothing behind."""
    one.create_task(task("t1"))
    one.save_answer(answer(1, Answer.REMEMBER, "kept.test"))
    one.save_answer(answer(2, Answer.REMEMBER, "kept.test"))
    one.save_answer(answer(3, Answer.REMEMBER, "gone.test"))
    one.save_answer(answer(4, Answer.DENY, "no.test"))
    assert other.not_noted() == (1, 2, 3, 4)
    one.note_answer(1)
    one.note_answer(4)
    assert other.not_noted() == (2, 3)
    for question in (2, 3, 9):
        other.take_back(question)
    assert one.not_noted() == ()
    assert [record.question for record in one.answers("t1")] == [1, 4]
    assert [rule.host for rule in one.rules()] == ["kept.test"]
    assert one.grants("t1") == ()


def rules_belong_to_one_folder(one: Store, other: Store) -> None:
    """ASK-8: path, device and inode all count, and what is below inherits nothing; remembering twice is one rule."""
    rule = one.save_answer(answer(1, Answer.REMEMBER))
    assert one.save_answer(answer(2, Answer.REMEMBER, by="bob")) == rule
    one.save_answer(answer(3, Answer.REMEMBER, phase=Phase.INSTALL))
    for folder in (FolderKey("/w", 1, 3), FolderKey("/w", 2, 2), FolderKey("/w/sub", 1, 2), FolderKey("/", 1, 2)):
        assert other.rules(folder) == ()
    assert [(found.phase, found.question) for found in other.rules(FOLDER)] == [
        (Phase.RUNTIME, 1),
        (Phase.INSTALL, 3),
    ]
    assert other.rules() == other.rules(FOLDER)


def what_is_forgotten_is_gone(one: Store, other: Store) -> None:
    """ASK-8: the rule, and what living tasks of that folder have of it; an answer for the task alone stays."""
    one.create_task(task("t1"))
    one.create_task(task("t2"))
    one.create_task(task("t3", folder=FolderKey("/v", 1, 9)))
    rule = one.save_answer(answer(1, Answer.REMEMBER))
    one.save_answer(answer(2, Answer.TASK, name="t2"))
    one.save_answer(answer(3, Answer.REMEMBER, name="t3", folder=FolderKey("/v", 1, 9)))
    assert rule is not None
    assert other.forget(rule.id) == rule
    assert other.forget(rule.id) is None
    assert one.rules(FOLDER) == ()
    assert [len(one.grants(name)) for name in ("t1", "t2", "t3")] == [0, 1, 1]
    again = one.save_answer(answer(4, Answer.REMEMBER))
    assert again is not None
    assert again.id != rule.id


def trust_is_of_exactly_one_folder(one: Store, other: Store) -> None:
    """POL-9: what was trusted last, in that very folder."""
    first = Trust(FOLDER, "ab" * 32, b"hosts: []\n\xff", 1.0, "alice")
    second = Trust(FOLDER, "cd" * 32, b"", 2.0, "bob")
    one.trust(first)
    assert other.trusted(FOLDER) == first
    one.trust(second)
    assert other.trusted(FOLDER) == second
    assert other.trusted(FolderKey("/w", 1, 3)) is None
    assert not other.untrust(FolderKey("/w/sub", 1, 2))
    assert other.untrust(FOLDER)
    assert not other.untrust(FOLDER)
    assert one.trusted(FOLDER) is None


def tokens_are_listed_and_revoked(one: Store, other: Store) -> None:
    """SRV-2: listed, used and revoked; a name is free again once its token is revoked, a hash never is."""
    phone = one.add_token(Token(0, "phone", "viewer", b"\x01" * 32, 1.0, expires=99.0))
    laptop = one.add_token(Token(0, "laptop", "owner", b"\x02" * 32, 2.0))
    assert phone.id != laptop.id
    assert other.tokens() == (phone, laptop)
    for bad in (
        Token(0, "phone", "viewer", b"\x04" * 32, 3.0),
        Token(0, "new", "viewer", b"\x02" * 32, 3.0),
        Token(0, "new", "admin", b"\x05" * 32, 3.0),
    ):
        with pytest.raises(ValueError, match="token"):
            one.add_token(bad)
    one.touch_token(phone.id, 5.0)
    assert one.revoke_token(phone.id, 6.0)
    assert not one.revoke_token(phone.id, 7.0)
    assert not one.revoke_token(999, 7.0)
    assert other.tokens() == (phone.replace(last_used=5.0, revoked=6.0), laptop)
    one.add_token(Token(0, "phone", "viewer", b"\x06" * 32, 8.0))


def settings_change_all_or_nothing(one: Store, other: Store) -> None:
    """SRV-2: what was patched is there for everyone, and one wrong value changes nothing."""
    assert one.settings().network_default == "none"
    patched = one.patch_settings({"network_default": "allowlist", "default_hosts": ["a.test"]})
    assert other.settings() == patched
    assert patched.wait_seconds == 900
    with pytest.raises(SettingError):
        one.patch_settings({"wait_seconds": 60, "network_default": "all"})
    with pytest.raises(SettingError):
        one.patch_settings({"colour": "blue"})
    assert other.settings() == patched


def many_write_at_once(one: Store, other: Store) -> None:
    """Nothing is lost or torn where two openings and eight threads write at the same time."""
    one.create_task(task("t1"))
    failures: list[BaseException] = []

    def write(store: Store, first: int) -> None:
        try:
            for number in range(first, first + 25):
                store.save_answer(answer(number, Answer.REMEMBER, f"h{number}.test"))
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=write, args=((one, other)[at % 2], 1 + 25 * at)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(one.rules()) == len(other.answers("t1")) == len(one.grants("t1")) == 200


ALL = (
    tasks_come_back_whole, tasks_are_listed_newest_first, many_tasks_end_at_once, living_tasks_change,
    question_numbers_are_never_given_twice,
    answers_are_kept_with_what_they_mean, an_answer_is_taken_back_whole, rules_belong_to_one_folder,
    what_is_forgotten_is_gone,
    uids_are_leased_oldest_free_first, many_lease_at_once_and_none_twice,
    trust_is_of_exactly_one_folder, tokens_are_listed_and_revoked, settings_change_all_or_nothing, many_write_at_once,
)  # fmt: skip
