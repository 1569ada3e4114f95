"""Where this machine has the list of public suffixes: the file of the package `publicsuffix` of distributions."""

from __future__ import annotations

from tidegate.model.errors import TidegateError
from tidegate.policy.suffixes import Suffixes

PLACES = (
    "/usr/share/publicsuffix/public_suffix_list.dat",  # Debian, Fedora, Arch
    "/usr/share/publicsuffix/effective_tld_names.dat",  # its older name
    "/usr/share/libpsl/public_suffix_list.dat",
)
_REGISTRIES_END = "// ===END ICANN DOMAINS==="  # what follows are suffixes of companies
_MAX_BYTES = 8 * 1024 * 1024  # it has about 300 KiB


def load_suffixes(what: str, *, companies: bool = True) -> Suffixes:
    """Return the machine's list, with what companies give out below their names or without. `what` is what needs it.

    Raises:
        TidegateError: when there is none.
    """
    for path in PLACES:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(_MAX_BYTES)
        except OSError:
            continue
        found = Suffixes((text if companies else text.partition(_REGISTRIES_END)[0]).splitlines())
        if found:
            return found
    raise TidegateError(f"{what} needs the list of public suffixes, and it is not here", fix="apt install publicsuffix")
