"""`--policy FILE` and the files of other products (POL-15).

A policy of ours is read as one and costs nothing more. Only a text that is none is looked at again: where it is another
product's, it counts as what `tidegate policy import` makes of it, and the errors are those of that product's file.
"""

from __future__ import annotations

from tidegate.model.errors import StartError, TidegateError, WithoutGateError
from tidegate.model.rule import Layer
from tidegate.policy.loader import load_policy
from tidegate.policy.positions import PolicyErrors, on_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tidegate.policy.dialects.imported import Imported
    from tidegate.policy.layers import PolicyLayer
    from tidegate.policy.suffixes import Suffixes


def policy_layer(path: str, folder: str) -> tuple[PolicyLayer, tuple[str, ...]]:
    """Return the layer of a `--policy` file, and a note where it is of another product. `folder` is the task's.

    Raises:
        UsageError: when it cannot be read, with all that is wrong in it.
        StartError: where its product would launch nothing.
        WithoutGateError: where it asks for no gate.
    """
    from tidegate.runtime.policy_sources import read_policy_file

    layer, imported = read_policy(read_policy_file(path), path, folder)
    if imported is None:
        return layer, ()
    notes: tuple[str, ...] = (f"{imported.summary} (tidegate policy import {on_screen(path, 200)} says which)",)
    if imported.options:
        asked = " ".join(imported.options)
        notes += (
            f"{on_screen(path, 200)} also asks for {asked}; a policy holds no options, so they are given by hand",
        )
    return layer, notes


def read_policy(data: bytes, name: str, folder: str) -> tuple[PolicyLayer, Imported | None]:
    """Return the layer of a policy's text, and what it was imported from where it is of another product.

    Raises:
        UsageError, StartError, WithoutGateError: as above.
    """
    try:
        return load_policy(data, name, Layer.COMMAND_LINE), None
    except PolicyErrors:
        imported = import_file(data, name, folder=folder)
        if imported is None:
            from tidegate.policy.dialects.reader import is_strange, unknown

            if is_strange(data):
                raise unknown(data, name) from None
            raise
    refuse(imported)
    if imported.without_gate:
        raise WithoutGateError(f"{imported.because}: no gate and no policy", imported.without_gate)
    from tidegate.policy.dialects.reader import layer_of

    return layer_of(imported, Layer.COMMAND_LINE), imported


def import_file(
    data: bytes, path: str, *, folder: str, select: str = "", dialect: str = "", first: bool = False
) -> Imported | None:
    """Return what a file of another product became; None where it is of none.

    Raises:
        UsageError: with what is wrong in it, or where nothing says which of several policies counts.
        StartError: where the list of public suffixes is not here, and a wildcard is to be judged by it.
    """
    from tidegate.policy.dialects.imported import Wanted
    from tidegate.policy.dialects.reader import read_dialect

    return read_dialect(data, path, Wanted(select, folder, first), _Registries().is_suffix, dialect)


class _Registries:
    """The public suffixes of registries: the list is read when the first question is asked."""

    def __init__(self) -> None:
        self._suffixes: Suffixes | None = None

    def is_suffix(self, name: str) -> bool:
        """Whether anybody may register below a name: `com`, `co.uk`, a top level that nobody knows.

        Raises:
            StartError: where the list of such names cannot be read.
        """
        from tidegate.runtime.suffix_list import load_suffixes

        if self._suffixes is None:
            try:
                self._suffixes = load_suffixes("a wildcard of such a file", companies=False)
            except TidegateError as error:
                raise StartError(error.what, fix=error.fix, code="suffix-list") from None
        return self._suffixes.is_public(name)


def refuse(imported: Imported) -> None:
    """Refuse what its own product would not launch.

    Raises:
        StartError: for that.
    """
    what, fix = imported.refusal
    if what:
        raise StartError(what, fix=fix, code="no-network-policy")
