"""The roles of a jitted function's arguments: each is dynamic or static, and may be donated."""

from __future__ import annotations

from collections.abc import Callable

from gradix._api.arguments import positions, signature
from gradix._api.jit.fingerprint import ATOMS, NoFingerprint, fingerprint
from gradix._api.jit.static_errors import not_hashable
from gradix._base.tree import tree_flatten as flatten


class ArgumentRoles:
    """The roles of one function's arguments; every call reads them."""

    __slots__ = (
        "_fun",
        "_name",
        "_plans",
        "donate_names",
        "donate_numbers",
        "has_static",
        "static_names",
        "static_numbers",
    )

    def __init__(self, fun: Callable, name: str, static: tuple, donated: tuple):
        self._fun, self._name = fun, name
        (self.static_numbers, static_names), (self.donate_numbers, donate_names) = static, donated
        self.static_names, self.donate_names = frozenset(static_names), frozenset(donate_names)
        self.has_static = bool(self.static_numbers or self.static_names)
        self._plans: dict[int, tuple[list, list]] = {}

    def split(self, args, kwargs):
        """The dynamic positional and keyword arguments, and (place, fingerprint) of static ones."""
        if not self.has_static:
            return args, kwargs, ()
        if kwargs:
            dynamic, named, values = self.parts(args, kwargs)
            given = values.items()
        else:
            plan = self._plans.get(len(args)) or self._plan(len(args))
            dynamic, named = tuple([args[i] for i in plan[1]]), kwargs
            given = [(place, args[i]) for place, i in plan[0]]
        static = []
        for place, value in given:
            kind = type(value)
            if kind in ATOMS:
                static.append((place, (kind, value)))
                continue
            try:
                static.append((place, fingerprint(value)))
            except (NoFingerprint, RecursionError) as e:
                raise not_hashable(self._name, place, value, e) from None
        return dynamic, named, tuple(static)

    def parts(self, args, kwargs):
        """The dynamic positional and keyword arguments, and a dict of the static ones.

        The key of a static argument is its name, or its number if it has no name.
        """
        places, dynamic = self._plans.get(len(args)) or self._plan(len(args))
        values = {place: args[i] for place, i in places}
        given = [k for k in kwargs if k in self.static_names and k not in values]
        if given:
            values.update([(k, kwargs[k]) for k in given])
            values = dict(sorted(values.items(), key=lambda item: str(item[0])))
            kwargs = {k: v for k, v in kwargs.items() if k not in given}
        return tuple([args[i] for i in dynamic]), kwargs, values

    def shown(self, static, args, kwargs) -> list[tuple]:
        """For each static argument its name, its fingerprint in `static`, and its value."""
        values = self.parts(args, kwargs)[2].values()
        return [(str(place), key, value) for (place, key), value in zip(static, values)]

    def _plan(self, count: int) -> tuple[list, list]:
        """How `count` positional arguments are split.

        Returns:
            for static arguments the pairs (key, number), and the numbers of dynamic arguments.
        """
        sig, names = signature(self._fun), []
        for p in sig.parameters.values() if sig is not None else ():
            if p.kind is not p.POSITIONAL_OR_KEYWORD and p.kind is not p.POSITIONAL_ONLY:
                break
            names.append(p.name if p.kind is p.POSITIONAL_OR_KEYWORD else None)
        nums = self.static_positions(count)
        places = [(names[i] if i < len(names) and names[i] else i, i) for i in nums]
        plan = (sorted(places, key=lambda item: str(item[0])), [i for i in range(count) if i not in nums])
        self._plans[count] = plan
        return plan

    def static_positions(self, count: int) -> set[int]:
        return positions(self.static_numbers, count)

    def join(self, dynamic, named, args, kwargs):
        """All arguments `args` and `kwargs`, with the dynamic ones replaced by the given values."""
        if not self.has_static:
            return dynamic, named
        nums, rest = self.static_positions(len(args)), iter(dynamic)
        return (
            [a if i in nums else next(rest) for i, a in enumerate(args)],
            {k: named.get(k, v) for k, v in kwargs.items()},
        )

    def static_only(self, args, kwargs) -> tuple[list, dict]:
        """The arguments with None for each dynamic one, so that these are not kept alive."""
        nums = self.static_positions(len(args))
        return (
            [a if i in nums else None for i, a in enumerate(args)],
            {k: v if k in self.static_names else None for k, v in kwargs.items()},
        )

    def donated(self, args, kwargs) -> tuple[int, ...]:
        """The numbers of the leaves of the dynamic arguments that are donated."""
        if not self.donate_numbers and not self.donate_names:
            return ()
        numbers, static = (positions(self.donate_numbers, len(args)), self.static_positions(len(args)))
        parts = [(i in numbers, a) for i, a in enumerate(args) if i not in static]
        parts += [(k in self.donate_names, kwargs[k]) for k in sorted(kwargs) if k not in self.static_names]
        out: list[int] = []
        at = 0
        for donated, part in parts:
            n = len(flatten(part)[0])
            if donated:
                out += range(at, at + n)
            at += n
        return tuple(out)
