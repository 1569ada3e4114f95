"""Empty things to be put over others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.holds.apart import apart

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_covered_is_empty_and_stays_so(tmp_path: Path) -> None:
    """A folder, a file, a socket and a symlink are covered; nothing can be put there (HLD-14, HLD-15)."""
    code = """
    from tidegate.holds.masks import Masks
    import _socket
    base = sys.argv[1]
    os.mkdir(base + '/folder')
    for name in ('folder/secret', 'file'):
        with open(f'{base}/{name}', 'w') as file:
            file.write('secret')
    os.symlink('file', base + '/link')
    wire = _socket.socket(1)
    wire.bind(base + '/socket')
    wire.listen()
    inside(attributes=0)
    masks = Masks()
    masks.cover(base + '/folder', folder=True)
    for name in ('file', 'socket', 'link'):
        masks.cover(f'{base}/{name}', folder=False)
    print(os.listdir(base + '/folder'), attempt(open, base + '/folder/x', 'w'))
    print(open(base + '/file').read() == open(base + '/link').read() == '')
    print(attempt(_socket.socket(1).connect, base + '/socket'))
    print(*[attempt(os.unlink, f'{base}/{name}') for name in ('file', 'socket', 'link')])
    """
    lines = apart(code, str(tmp_path)).splitlines()
    assert lines == ["[] EROFS", "True", "ECONNREFUSED", "EBUSY EBUSY EBUSY"]


def test_wrong_kinds_do_not_fit(tmp_path: Path) -> None:
    """A folder cannot be covered by a file: an error, not a hole (HLD-7)."""
    code = """
    from tidegate.holds.masks import Masks
    inside(attributes=0)
    masks = Masks()
    print(attempt(lambda: masks.cover(sys.argv[1], folder=False)) != 'done')
    """
    assert apart(code, str(tmp_path)) == "True\n"
