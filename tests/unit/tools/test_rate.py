"""tidegate.tools.rate."""

from __future__ import annotations

from tidegate.tools.rate import Rate


def test_so_many_in_any_minute() -> None:
    """SRV-6: the third of two is refused until the first is a minute ago; what is refused is not counted."""
    rate = Rate(2)
    assert [rate.allows(now) for now in (0.0, 1.0, 2.0, 59.9, 60.0, 60.5, 61.0)] == [
        *(True, True, False, False),
        *(True, False, True),
    ]
