"""tidegate.journal.files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.descriptors import descriptors
from tests.unit.journal.not_files import NOT_FILES, put, word
from tidegate.journal.files import NoFileError, open_regular, require_regular


def test_a_file_is_opened(tmp_path: Path) -> None:
    """JRN-2: the neighbour that passes."""
    path = tmp_path / "log"
    path.write_bytes(b"a line\n")
    with open_regular(str(path)) as file:
        assert file.read() == b"a line\n"
        require_regular(file.fileno(), str(path))


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_file_is_refused_at_once_by_what_it_is(kind: str, tmp_path: Path) -> None:
    """JRN-2, JRN-5: nothing is waited for, nothing is read, no descriptor stays open."""
    path = tmp_path / "log"
    put(kind, path)
    before = descriptors()
    with pytest.raises(NoFileError) as raised:
        open_regular(str(path))
    assert (raised.value.strerror, raised.value.filename) == (word(kind), str(path))
    assert descriptors() <= before


def test_a_device_is_named(tmp_path: Path) -> None:
    """JRN-2: as an open descriptor shows it."""
    with open("/dev/null", "rb") as file, pytest.raises(NoFileError, match="a device stands"):
        require_regular(file.fileno(), str(tmp_path))


def test_what_is_not_there_is_not_there(tmp_path: Path) -> None:
    """JRN-2: a reader may go on where a file was just taken away."""
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "none"))
