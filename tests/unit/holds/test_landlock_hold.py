"""The hold as a whole: what it refuses by name, that it leaves nothing, and that it needs no namespace."""

from __future__ import annotations

import glob
import os

import pytest

from tests.holds import held
from tidegate.holds import landlock
from tidegate.holds.hold import LaunchSpec
from tidegate.holds.landlock_hold import LandlockHold
from tidegate.model.errors import StartError

NAMESPACE_CALLS = {"unshare": 1, "setns": 1, "mount_setattr": 1, "open_tree": 1, "fsopen": 1, "move_mount": 1}


@pytest.mark.parametrize("user", held.USERS)
def test_it_works_where_no_namespace_can_be_made(user: str) -> None:
    """Inside a filter that refuses every call for one, as a container's does (HLD-2, HLD-12)."""
    answer = held.hold(
        "landlock", ["/bin/sh", "-c", "echo $(id -u) ran"], user=user, refuse=NAMESPACE_CALLS, listeners=False
    )
    assert answer.get("out") == f"{0 if user == 'root' else 12345 if os.geteuid() == 0 else os.getuid()} ran\n", answer


def test_its_folder_goes_with_the_task() -> None:
    """TMPDIR and its neighbours are a folder of the task's own, which is gone afterwards (HLD-14)."""
    answer = held.hold("landlock", ["/bin/sh", "-c", 'echo "$TMPDIR"; touch "$TMPDIR/x" "$XDG_RUNTIME_DIR/y"; mktemp'])
    folder, made = answer["out"].split()
    assert made.startswith(folder)
    assert not os.path.lexists(os.path.dirname(folder))
    assert not glob.glob(f"{os.path.dirname(folder)}*")


@pytest.mark.parametrize(("wish", "says"), [({"capture": "on"}, "--capture"), ({"published": (8080,)}, "--publish")])
def test_what_it_has_not_is_refused_by_name(wish: dict[str, object], says: str) -> None:
    """Before anything starts, with what to do instead (POL-12, HLD-7)."""
    held.need("landlock")
    spec = LaunchSpec(argv=("/bin/true",), env={}, cwd="/").replace(**wish)
    with pytest.raises(StartError) as raised:
        LandlockHold().launch(spec, lambda _sockets: None)
    assert says in raised.value.what
    assert raised.value.fix


@pytest.mark.parametrize("abi", [0, 3, 5])
def test_an_older_kernel_is_told_what_it_lacks(abi: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals are scoped since ABI 6 only: without that a task could end its gate, so it is no hold (HLD-7, HLD-12)."""
    monkeypatch.setattr(landlock, "abi", lambda: abi)
    error = LandlockHold().probe()
    assert error is not None
    assert "6.12" in error.fix
    assert "\n" not in str(error)


def test_the_gates_port_is_one_port() -> None:
    """Each hold has a port of its own, the same for all its launches."""
    one, other = LandlockHold(), LandlockHold()
    first, again = one.own_port(), one.own_port()
    assert first == again
    assert first != other.own_port()
    one.close()
    other.close()


def test_whom_it_trusts_is_in_its_own_folder() -> None:
    """Where hosts are read inside TLS, its variables lead to a file that it can read and not write (INS-2)."""
    program = (
        "import os; path = os.environ['SSL_CERT_FILE']; print(open(path).read(), path.startswith('/run/tidegate'))\n"
        "try: open(path, 'w')\nexcept OSError as error: print(error.errno)"
    )
    trust = [("/run/tidegate/ca.pem", "roots"), ("/etc/ssl/cert.pem", "other")]
    answer = held.hold(
        "landlock", [held.PYTHON, "-I", "-c", program], env={"SSL_CERT_FILE": "/run/tidegate/ca.pem"}, trust=trust
    )
    assert answer["out"] == "roots False\n13\n", answer
