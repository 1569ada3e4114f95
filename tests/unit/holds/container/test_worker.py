"""worker.py: what a worker is asked for with."""

from __future__ import annotations

import pytest

from tidegate.holds.container.worker import check_options, image_variables, kept_variables
from tidegate.model.errors import UsageError


@pytest.mark.parametrize(
    "text", ["privileged=true", "volume=/:/x", "cap-add=ALL", "network=host", "memory", "memory=", ""]
)
def test_options_outside_the_list_are_refused(text: str) -> None:
    """No right, mount or network, and nothing without a value (HLD-13)."""
    with pytest.raises(UsageError, match="no option that a task's container takes"):
        check_options([text])


def test_options_of_the_list_pass() -> None:
    """The neighbour: limits, a runtime and variables."""
    given = ("memory=2g", "runtime=runsc", "env=A=b=c")
    assert check_options(given) == given


def test_variables_come_by_name_or_meaning() -> None:
    """Language and terminal come along; others by name, with a value of their own, or not where there is none."""
    caller = {"LANG": "de", "LC_ALL": "C", "TERM": "xterm", "SECRET": "s", "HTTP_PROXY": "http://x", "PATH": "/x"}
    assert kept_variables(caller) == {"LANG": "de", "LC_ALL": "C", "TERM": "xterm"}
    named = kept_variables(caller, ("env=SECRET", "env=NEW=a=b", "env=ABSENT", "memory=1g"))
    assert (named["SECRET"], named["NEW"], "ABSENT" in named) == ("s", "a=b", False)


def test_an_image_brings_its_variables() -> None:
    """Also an image without any."""
    assert image_variables({"Config": {"Env": ["PATH=/bin", "A=b=c"]}}) == {"PATH": "/bin", "A": "b=c"}
    assert image_variables({"Config": {"Env": None}}) == image_variables({}) == {}
