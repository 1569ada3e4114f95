"""tidegate.model.address_class."""

from __future__ import annotations

from tidegate.model.address_class import AddressClass, Admission, Modes


def test_the_words_are_the_contracts() -> None:
    """ADR-2: classes and admissions as policies write them."""
    assert [one.value for one in AddressClass] == ["public", "private", "own", "never"]
    assert [one.value for one in Admission] == ["never", "exact-host", "exact-host-port"]


def test_the_native_default_is_the_strictest_that_admits_anything() -> None:
    """ADR-2: exact-host-port for both."""
    assert Modes().private is Modes().own is Admission.EXACT_HOST_PORT
