"""The routing rule of the hold `uid`: made once, for both families."""

from __future__ import annotations

from tests.unit.holds.uid_apart import NEEDS_ROOT, fenced

pytestmark = NEEDS_ROOT


def test_a_user_has_a_route_to_everywhere_that_ends_here() -> None:
    """Made twice it is there once; only the range's users are led (HLD-3, HLD-6)."""
    code = """
    uid_routes.keep_at_home()
    uid_routes.keep_at_home()
    def source(address):
        with socket.socket(10 if ':' in address else 2, 2) as wire:
            wire.connect((address, 9))
            return wire.getsockname()[0]
    for uid in (29999, 30000, 39999, 40000):
        print(uid, as_user(uid, source, '1.2.3.4'), as_user(uid, source, '2001:db8::1'))
    """
    assert fenced(code).splitlines() == [
        "29999 ENETUNREACH ENETUNREACH",
        "30000 198.18.0.1 ::1",
        "39999 198.18.0.1 ::1",
        "40000 ENETUNREACH ENETUNREACH",
    ]
