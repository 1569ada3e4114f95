"""Who is there: an owner that looks counts for thirty seconds."""

from __future__ import annotations

from tidegate.server.presence import SEEN_SECONDS, Presence


def test_somebody_is_there_for_as_long_as_the_promise_says() -> None:
    """ASK-4: nobody is there before an owner looked, one is for 30 s after it, and looking again begins them anew."""
    now = [100.0]
    presence = Presence(clock=lambda: now[0])
    assert not presence.present("t")
    presence.seen()
    assert presence.present("t")
    now[0] += SEEN_SECONDS - 0.01
    assert presence.present("other")
    presence.seen()
    now[0] += SEEN_SECONDS - 0.01
    assert presence.present("t")
    now[0] += 0.01
    assert not presence.present("t")
