"""scripts/launcher/bundle.py: the one file a start reads its modules from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON = os.path.realpath(sys.executable)


class Clone:
    """A small tidegate with an environment, started by the real boot file."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "clone"
        self.environment = root / "env"
        self.module = self.folder / "src" / "tidegate" / "cli" / "main.py"
        self.module.parent.mkdir(parents=True)
        for package in (self.module.parent.parent, self.module.parent):
            (package / "__init__.py").write_text("")
        self.say("first")
        shutil.copytree(ROOT / "scripts" / "launcher", self.folder / "scripts" / "launcher")
        (self.environment / "lib" / f"python{VERSION}" / "site-packages").mkdir(parents=True)

    def say(self, word: str) -> None:
        self.module.write_text(f"def main(argv):\n    print({word!r}, type(__spec__.loader).__name__)\n    return 0\n")

    def bundle(self) -> Path:
        code = "import sys; sys.path.insert(0, sys.argv[1]); from bundle import *; write_bundle(*sys.argv[2:])"
        launcher = str(self.folder / "scripts" / "launcher")
        argv = [PYTHON, "-I", "-c", code, launcher, str(self.folder), str(self.environment)]
        subprocess.run(argv, check=True, timeout=60)
        (made,) = self.environment.glob("*.bundle*")
        return made

    def start(self) -> list[str]:
        boot = str(self.folder / "scripts" / "launcher" / "boot.py")
        argv = [PYTHON, "-I", "-S", boot, str(self.folder), str(self.environment)]
        return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_modules_come_from_the_bundle(tmp_path: Path) -> None:
    """A start reads one file instead of a hundred."""
    clone = Clone(tmp_path)
    assert clone.start() == ["first", "SourceFileLoader"]
    clone.bundle()
    assert clone.start() == ["first", "Bundle"]


def test_a_source_that_changed_is_what_runs(tmp_path: Path) -> None:
    """A stale bundle is slower and never wrong: after an edit or a pull the source counts."""
    clone = Clone(tmp_path)
    clone.bundle()
    clone.say("second")
    assert clone.start() == ["second", "SourceFileLoader"]
    clone.module.unlink()
    with pytest.raises(subprocess.CalledProcessError):
        clone.start()


@pytest.mark.parametrize("content", [b"", b"\0" * 7, b"\xff" * 64, b"\x10\0\0\0\0\0\0\0[" + b"\0" * 20])
def test_what_is_no_bundle_is_left_aside(tmp_path: Path, content: bytes) -> None:
    """A cut or foreign file starts as if there were none."""
    clone = Clone(tmp_path)
    clone.bundle().write_bytes(content)
    assert clone.start() == ["first", "SourceFileLoader"]


@pytest.mark.parametrize("name", ["SKIPPED", "LATER"])
def test_the_lists_name_what_there_is(name: str) -> None:
    """An entry of a list that nothing begins with would be one that was forgotten when its module was moved.

    The rooms of a start are in the bundle, and what reads YAML (SKIPPED) is not.
    """
    sys.path.insert(0, str(ROOT / "scripts" / "launcher"))
    try:
        import bundle  # type: ignore[import-not-found]
    finally:
        del sys.path[0]
    for module in getattr(bundle, name):
        assert list((ROOT / "src" / "tidegate").glob(f"{module}*")), module


def test_a_command_keeps_its_help(tmp_path: Path) -> None:
    """HLD-16: docstrings are left out of the bundle, but a command's is what `--help` prints, also one that is new.

    Its neighbour that is no command comes from the bundle.
    """
    clone = Clone(tmp_path)
    command = clone.module.parent / "fresh.py"
    command.write_text('import os\nimport click\n\n\n@click.command()\ndef fresh() -> None:\n    """What it does."""\n')
    package = clone.environment / "lib" / f"python{VERSION}" / "site-packages" / "click.py"
    package.write_text("def command():\n    return lambda called: called\n")
    clone.module.write_text(
        "def main(argv):\n    from tidegate.cli.fresh import fresh\n    print(fresh.__doc__)\n    return 0\n"
    )
    clone.bundle()
    assert clone.start() == ["What", "it", "does."]
    clone.say("neighbour")
    clone.bundle()
    assert clone.start() == ["neighbour", "Bundle"]


def test_what_a_start_does_not_import_is_read_when_it_is(tmp_path: Path) -> None:
    """The second half is loaded from the bundle too; from another file that lies in its place by then nothing is."""
    clone = Clone(tmp_path)
    tools = clone.module.parent.parent / "tools"
    tools.mkdir()
    (tools / "__init__.py").write_text("")
    (tools / "late.py").write_text("HERE = 'late', type(__spec__.loader).__name__, __file__.rpartition('/')[2]\n")
    body = "    from tidegate.tools.late import HERE\n    print(*HERE)\n    return 0\n"
    clone.module.write_text(f"def main(argv):\n{body}")
    made = clone.bundle()
    assert clone.start() == ["late", "Bundle", "late.py"]
    # Set up anew between a start and its import.
    clone.module.write_text(f"import os\ndef main(argv):\n    os.replace({str(made) + '-2'!r}, {str(made)!r})\n{body}")
    other = Path(f"{clone.bundle()}-2")
    shutil.copy(made, other)
    assert clone.start() == ["late", "SourceFileLoader", "late.py"]
