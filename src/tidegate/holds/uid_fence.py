"""The table of the hold `uid` in the kernel: loaded before any task, proven to be itself, changed by element.

Rules of the file: by `nft` alone, each change one transaction; a table that is there is compared, rule by rule, with
one that the same `nft` loads in a network namespace of its own, so that neither its version nor its way of writing
matters; a table that differs is replaced only while no user has a place in it. Callers hold the lock of
uid_claims.py. nft(8), libnftables-json(5).
"""

from __future__ import annotations

import json
import os
import subprocess
from threading import Thread

from tidegate.holds import attempt_log, linux
from tidegate.holds.uid_table import FAMILY, GUARDED, LOG_GROUP, OWN, TABLE, change_text, mark_of, table_text
from tidegate.model.errors import StartError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PLACES = ("/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft", "/usr/local/sbin/nft")
MODULES = "nf_tables nft_chain_nat nft_redir nft_ct nft_fib_inet nft_limit nft_log nft_reject_inet nft_socket"
_PATIENCE = 20  # seconds
COUNTS = ("refused", "logged")  # these fill themselves, and stay when a user is gone
_LIST = ("-j", "-s", "list", "table", FAMILY, TABLE)
_RULES = ("-j", "-s", "-t", "list", "table", FAMILY, TABLE)  # without elements, of which there may be thousands
_reference: list[Any] = []  # found once in a process


class NftError(Exception):
    """nft said no; its first line."""


def ensure() -> bool:
    """See that the table is loaded and whole; load it where it is not, and say whether that was needed.

    Raises:
        StartError: where it cannot be loaded, or another one is in use.
    """
    try:
        now, wanted = rules(), reference()
        if now == wanted:
            return False
        whole = _load(now, wanted)
    except NftError as error:
        raise cannot_load(str(error)) from error
    if not whole:
        raise StartError(
            f"the table {FAMILY} {TABLE} is not as this version of tidegate makes it, and tasks live by it",
            fix="wait until they have ended, or end them; `tidegate doctor` tells more",
            code="uid-table",
        )
    return True


def _load(now: list[Any] | None, wanted: list[Any]) -> bool:
    """Load the table in the place of what is there now; whether it is as it must be then."""
    if now is not None and living():
        return False
    replace = "" if now is None else f"delete table {FAMILY} {TABLE}\n"
    run(("-f", "-"), replace + _text())
    return rules() == wanted


def rules() -> list[Any] | None:
    """What the table is made of, without elements and numbers; None where there is none.

    Raises:
        NftError: where nft does not run.
    """
    try:
        return _plain(run(_RULES))
    except NftError as error:
        if "No such file" in str(error):
            return None
        raise


def reference() -> list[Any]:
    """What it must be made of.

    Raises:
        NftError: where it cannot be loaded even in a namespace of its own.
    """
    if not _reference:
        _reference.extend(_plain(_elsewhere()))
    return list(_reference)


def living() -> dict[str, list[Any]]:
    """The elements of the table by set or map, those of users only.

    Raises:
        NftError: where the table cannot be read.
    """
    try:
        said = json.loads(run(_LIST))["nftables"]
    except NftError as error:
        if "No such file" in str(error):
            return {}
        raise
    found = {}
    for item in said:
        for kind in ("map", "set"):
            one = item.get(kind)
            if one and one.get("elem") and one["name"] not in COUNTS:
                found[one["name"]] = one["elem"]
    return found


def places_of(uid: int) -> list[tuple[str, str]]:
    """What a user has in the table; guarded ports are nobody's in particular.

    Raises:
        NftError: where the table cannot be read.
    """
    found = []
    for name, elements in living().items():
        for one in elements:
            key, *value = one if isinstance(one, list) else (one,)
            parts = key["concat"] if isinstance(key, dict) else [key]
            if name != GUARDED and parts[0] in (uid, mark_of(uid)):
                found.append((name, " : ".join((" . ".join(map(str, parts)), *map(str, value)))))
    return found


def own_ports(uid: int) -> list[int]:
    """The ports of a user's own servers that are in the table; none where there is no table."""
    try:
        said = json.loads(run(("-j", "list", "set", FAMILY, TABLE, OWN)))["nftables"]
    except NftError:
        return []
    pairs = [one["concat"] for item in said for one in item.get("set", {}).get("elem", ())]
    return [int(port) for owner, port in pairs if owner == uid]


def refused() -> dict[int, int]:
    """How many packets of each user were turned away.

    Raises:
        NftError: where the table cannot be read.
    """
    said = json.loads(run(("-j", "list", "set", FAMILY, TABLE, "refused")))["nftables"]
    found = {}
    for item in said:
        for element in item.get("set", {}).get("elem", ()):
            one = element["elem"]
            found[int(one["val"])] = int(one["counter"]["packets"])
    return found


def change(word: str, changes: Iterable[tuple[str, str]]) -> None:
    """Create (they must be new), add or delete elements: all or none.

    Raises:
        NftError: where one cannot be.
    """
    run(("-f", "-"), change_text(word, changes))


def forget(changes: Iterable[tuple[str, str]]) -> None:
    """Delete what there is of these elements. That there is no table is fine."""
    all_of_them = list(changes)
    for some in (all_of_them, *([one] for one in all_of_them)):
        try:
            # Added first, so that it does not matter whether it is there.
            run(("-f", "-"), change_text("add", some) + change_text("delete", some))
        except NftError:
            continue
        if some is all_of_them:
            return


def run(arguments: tuple[str, ...], text: str = "") -> str:
    """Run nft and return what it says.

    Raises:
        NftError: where it fails; the first line of why.
    """
    try:
        done = subprocess.run(
            (program(), *arguments), input=text, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NftError(f"nft does not run: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"nft ended with {done.returncode}"]
        raise NftError(lines[0])
    return done.stdout


def program() -> str:
    """The path of nft; not looked for along the PATH, which may be anybody's.

    Raises:
        NftError: where there is none.
    """
    for path in PLACES:
        if os.access(path, os.X_OK):
            return path
    raise NftError("the program nft is missing")


def cannot_load(why: str) -> StartError:
    """No task may start under this hold."""
    missing = "missing" in why
    return StartError(
        f"the hold uid needs the table {FAMILY} {TABLE} of nftables, which cannot be loaded: {why}",
        fix="apt-get install nftables (or your system's package of nft)" if missing
        else f"run as root with CAP_NET_ADMIN; modprobe -a {MODULES}; or --hold netns, which needs no table",
        code="uid-table",
    )  # fmt: skip


def _text() -> str:
    return table_text(nflog=attempt_log.kind(LOG_GROUP) == attempt_log.NFLOG)


def _plain(text: str) -> list[Any]:
    """The parts of a listing that do not change while it is used."""
    kept = []
    for item in json.loads(text)["nftables"]:
        for kind, one in item.items():
            if kind != "metainfo":
                kept.append(
                    {kind: {key: value for key, value in one.items() if key not in ("handle", "elem", "index")}}
                )
    return sorted(kept, key=lambda one: next(iter(one)) == "rule")  # rules stay in their order


def _elsewhere() -> str:
    """The listing of the table in a network namespace where it is the only one: a thread's, which ends with it."""
    found: list[str | Exception] = []

    def look() -> None:
        try:
            linux.unshare(linux.CLONE_NEWNET)
            run(("-f", "-"), _text())
            found.append(run(_RULES))
        except (OSError, NftError) as error:
            found.append(error)

    thread = Thread(target=look, name="nft")
    thread.start()
    thread.join()
    if found and isinstance(found[0], str):
        return found[0]
    raise NftError(str(found[0]) if found else "nft ended without a word")
