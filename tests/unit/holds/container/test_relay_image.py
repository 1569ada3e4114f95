"""The relay's image, unpacked and run with nothing else to be found."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from tidegate.holds.container import relay_image
from tidegate.model.errors import StartError

if TYPE_CHECKING:
    from pathlib import Path


def run_inside(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the image's Python with `root` as its whole world."""
    argv = ["chroot", str(root), "/usr/bin/python3", *words]
    if os.geteuid() != 0:
        argv = ["unshare", "--map-root-user", *argv]
    environ = {"LD_LIBRARY_PATH": relay_image.LIBRARIES, "PATH": os.environ["PATH"]}
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image, unpacked."""
    if not shutil.which("chroot"):
        pytest.skip("chroot is not installed")
    folder = tmp_path_factory.mktemp("image")
    subprocess.run(["tar", "-x", "-C", folder], input=relay_image.make_tar(), check=True, timeout=60)
    return folder


def test_the_program_runs_from_the_image_alone(root: Path) -> None:
    """HLD-4: the relay in the image connects to a socket in its folder, and says where there is none."""
    words = (*relay_image.COMMAND[1:], "check", "/run/tidegate")
    done = run_inside(root, *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "tidegate-relay 1 ENOENT\n", "")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(root / "run/tidegate/gate.sock"))
        sock.listen(1)
        done = run_inside(root, *words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tidegate-relay 1 connected\n", "")


def test_it_can_speak_tls_and_look_names_up(root: Path) -> None:
    """HLD-4 (c): what the second relay needs is in it."""
    program = (
        "import socket, ssl; ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); print(ssl.HAS_TLSv1_3);"
        "print(socket.getaddrinfo('127.0.0.1', 80, type=socket.SOCK_STREAM)[0][4])"
    )
    done = run_inside(root, "-I", "-S", "-B", "-c", program)
    assert (done.stdout, done.stderr) == ("True\n('127.0.0.1', 80)\n", "")


def test_it_holds_one_program(root: Path) -> None:
    """HLD-4: no shell and no other program, nothing of this machine's users, nothing that is set-uid."""
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_socket()]
    assert [path.name for path in (root / "usr/bin").iterdir()] == ["python3"]
    assert not (root / "bin").exists()
    assert not [path for path in files if path.stat().st_mode & 0o7022]
    assert sum(path.stat().st_size for path in files) < 100 << 20


def test_the_same_program_gives_the_same_image() -> None:
    """HLD-4: byte by byte; and its name says which program is inside."""
    assert relay_image.make_tar() == relay_image.make_tar()
    name, tag = relay_image.default_image().rsplit(":", 1)
    assert name == relay_image.NAME
    assert len(tag) == 12
    assert set(tag) <= set("0123456789abcdef")


@pytest.mark.parametrize("change", ["another", "gone", "renamed"])
def test_another_program_has_another_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str) -> None:
    """HLD-7: a newer tidegate never takes an older relay for its own, whichever module of it differs."""
    before = relay_image.default_image()
    other = tmp_path / "relay"
    shutil.copytree(os.path.dirname(relay_image.relay.__file__), other)
    monkeypatch.setattr(relay_image.relay, "__file__", str(other / "__init__.py"))
    assert relay_image.default_image() == before
    if change == "another":
        (other / "far.py").write_text("print('another')\n")
    elif change == "gone":
        (other / "far.py").unlink()
    else:
        (other / "far.py").rename(other / "near.py")
    assert relay_image.default_image() != before


@pytest.mark.parametrize("python", ["/bin/true", "/no/such/python"])
def test_a_python_that_is_none_says_what_to_do(python: str) -> None:
    """HLD-7: one line with the other way to an image."""
    with pytest.raises(StartError) as caught:
        relay_image.make_tar(python)
    assert caught.value.exit_status == 78
    assert "Containerfile" in str(caught.value)


def test_the_containerfile_has_the_program_where_tidegate_looks_for_it() -> None:
    """HLD-4: an image made by it is started as ours is."""
    path = os.path.join(os.path.dirname(relay_image.__file__), "Containerfile")
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if not line.startswith("#")]
    assert lines[0].startswith("FROM ")
    built = {}
    context = os.path.dirname(os.path.dirname(os.path.dirname(relay_image.__file__)))
    for line in lines[1:]:
        word, *sources, place = line.split()
        assert word == "COPY"
        for source in sources:
            found = os.path.join(context, source)
            names = [name for name in os.listdir(found) if name.endswith(".py")] if os.path.isdir(found) else [""]
            for name in names:
                to = os.path.join(place, os.path.basename(source)) if place.endswith("/") else os.path.join(place, name)
                with open(os.path.join(found, name).rstrip("/"), "rb") as program:
                    built[to.rstrip("/")] = program.read()
    wanted = {f"{relay_image.PROGRAM}/{path}": content for path, content in relay_image.program().items()}
    assert {path: content for path, content in built.items() if path in wanted} == wanted
    assert set(built) - set(wanted) == {f"{relay_image.PROGRAM}/tidegate/holds/container/relay/__main__.py"}
