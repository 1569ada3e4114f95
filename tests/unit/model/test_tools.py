"""tidegate.model.tools."""

from __future__ import annotations

from tidegate.model.host import canonical_host
from tidegate.model.tools import NAME, PLACE, URL


def test_the_name_is_canonical() -> None:
    """SRV-6, POL-3: a request for the URL is for exactly this place."""
    assert canonical_host(NAME) == PLACE.host
    assert f"http://{PLACE.host.text}/" == URL
