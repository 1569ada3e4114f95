"""The base of every frozen value in the house.

`dataclasses` costs `run` 17 ms at start (it brings `inspect` and `re`), so this is the part of it we use:
fields from annotations, defaults, equality, a hash, a `repr` and `replace`. Subclasses list annotated fields
and nothing else; a value never changes after it is made.

A class that says `hot=True` is made for every connection or request: its `__init__` is compiled when the first one is
made, and takes a twelfth of the time after that. It costs half a millisecond once, so few classes say so. While it is
filled such a value is of a class like its own that is not frozen: plain assignments to slots are what Python does fast.

What it does not do: no inheritance of fields, no converters, no ordering. A mutable default is a mistake.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options: object) -> object:
        """Stand in for the marker that only a type checker reads."""
        return lambda cls: cls


_set = object.__setattr__


def _compile_at_first(self: Value, *args: Any, **kwargs: Any) -> None:
    """Stand in for the `__init__` of a hot class until the first value is made."""
    cls = type(self)
    fields, defaults = cls._fields, cls._defaults
    words = ", ".join(f"{field}=defaults[{field!r}]" if field in defaults else field for field in fields)
    lines = "".join(f"\n    self.{field} = {field}" for field in fields)
    plain = {"__slots__": fields, "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    known: dict[str, Any] = {"defaults": defaults, "thaw": object.__dict__["__class__"].__set__, "frozen": cls}
    known["open"] = type.__new__(_ValueMeta, cls.__name__, cls.__bases__, plain)
    code = f"def __init__(self, {words}):\n    thaw(self, open){lines}\n    self.__class__ = frozen"
    exec(code, known)  # noqa: S102 - of names in our own source, as dataclasses do
    made = known["__init__"]
    cls.__init__ = made  # type: ignore[method-assign]
    made(self, *args, **kwargs)


@dataclass_transform(frozen_default=True)
class _ValueMeta(type):
    """Turns the annotations of a class body into slots."""

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any], *, hot: bool = False) -> _ValueMeta:
        fields = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in fields if field in body}
        body["__slots__"] = fields
        body["_fields"] = fields
        body["_defaults"] = defaults
        if hot:
            body["__init__"] = _compile_at_first
        return super().__new__(cls, name, bases, body)


class Value(metaclass=_ValueMeta):
    """A frozen record: two values with the same fields are the same value.

    Raises:
        TypeError: when a field is missing, unknown or given twice.
        AttributeError: when something tries to change one.
    """

    if TYPE_CHECKING:
        _fields: ClassVar[tuple[str, ...]]
        _defaults: ClassVar[dict[str, Any]]
    else:

        def __init__(self, *args, **kwargs):  # noqa: ANN002, ANN003, ANN204
            fields = self._fields
            if len(args) > len(fields):
                raise TypeError(f"{type(self).__name__} takes {len(fields)} fields, {len(args)} were given")
            for field, value in zip(fields, args, strict=False):
                _set(self, field, value)
            for field in fields[len(args) :]:
                if field in kwargs:
                    _set(self, field, kwargs.pop(field))
                elif field in self._defaults:
                    _set(self, field, self._defaults[field])
                else:
                    raise TypeError(f"{type(self).__name__} needs {field!r}")
            if kwargs:
                raise TypeError(f"{type(self).__name__} has no free field {next(iter(kwargs))!r}")

        def __setattr__(self, name, value):  # noqa: ANN001, ANN204
            raise AttributeError(f"{type(self).__name__} is frozen")

        def __delattr__(self, name):  # noqa: ANN001, ANN204
            raise AttributeError(f"{type(self).__name__} is frozen")

        def __reduce__(self):  # noqa: ANN204
            return (type(self), self._astuple())

    def _astuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field) for field in type(self)._fields)

    def replace(self, **changes: Any) -> Self:
        """Return the same value with some fields changed."""
        fields = type(self)._fields
        return type(self)(**{field: getattr(self, field) for field in fields} | changes)

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self._astuple() == other._astuple())

    def __hash__(self) -> int:
        return hash((type(self), self._astuple()))

    def __repr__(self) -> str:
        fields = type(self)._fields
        inside = ", ".join(f"{field}={getattr(self, field)!r}" for field in fields)
        return f"{type(self).__name__}({inside})"
