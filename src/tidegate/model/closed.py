"""Closed sets of named values: what `enum.Enum` is to the rest of the world, as far as we use it.

`enum` brings functools, collections, types and operator along, and takes its time for each class: 6 to 8 ms of every
start, and a call of Python's for each `value` that is read (docs/decisions/0021). So this is the part of it we use:
`name` and `value`, `Set(value)`, `Set["NAME"]`, iteration in order, one object for each member, and members that are
numbers. A type checker sees enum's own classes and checks all that it knows of them.

What it does not do: aliases, automatic values, flags, sets that grow. Two members with one value are a mistake.
"""

from __future__ import annotations

__all__ = ("Closed", "ClosedNumber")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import Enum as Closed
    from enum import IntEnum as ClosedNumber
else:

    class _ClosedMeta(type):
        """Turns what a class body names into members."""

        def __new__(cls, name, bases, body):  # noqa: ANN001, ANN204
            named = {key: value for key, value in body.items() if key[0] != "_" and not hasattr(type(value), "__get__")}
            for key in named:
                del body[key]
            made = super().__new__(cls, name, bases, body)
            by_name, by_value = {}, {}
            for key, value in named.items():
                one = int.__new__(made, value) if issubclass(made, int) else object.__new__(made)
                one.name, one.value = key, value
                if "__init__" in body:
                    one.__init__(*value)
                if by_value.setdefault(value, one) is not one:
                    raise TypeError(f"{name}.{key} has the value of {by_value[value]!r}")
                by_name[key] = one
                type.__setattr__(made, key, one)
            made._by_name, made._by_value, made._members = by_name, by_value, tuple(by_name.values())
            return made

        def __call__(cls, value):  # noqa: ANN001, ANN204
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                if value.__class__ is cls:
                    return value
                raise ValueError(f"{value!r} is not a valid {cls.__qualname__}") from None

        def __getitem__(cls, name):  # noqa: ANN001, ANN204
            return cls._by_name[name]

        def __iter__(cls):  # noqa: ANN204
            return iter(cls._members)

        def __reversed__(cls):  # noqa: ANN204
            return reversed(cls._members)

        def __len__(cls) -> int:
            return len(cls._members)

        def __bool__(cls) -> bool:
            return True

        def __contains__(cls, one):  # noqa: ANN001, ANN204
            return one.__class__ is cls

        def __setattr__(cls, name, value):  # noqa: ANN001, ANN204
            if name in cls.__dict__.get("_by_name", ()):
                raise AttributeError(f"{cls.__name__}.{name} is a member: it stays what it is")
            super().__setattr__(name, value)

        def __repr__(cls) -> str:
            return f"<closed set {cls.__name__!r}>"

    class Closed(metaclass=_ClosedMeta):
        """A set of members that are only themselves."""

        def __reduce__(self):  # noqa: ANN204
            return type(self), (self.value,)

        def __repr__(self) -> str:
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __str__(self) -> str:
            return f"{type(self).__name__}.{self.name}"

    class ClosedNumber(int, metaclass=_ClosedMeta):
        """A set of members that are whole numbers too."""

        __reduce__ = Closed.__reduce__
        __repr__ = Closed.__repr__
        __str__ = int.__repr__
