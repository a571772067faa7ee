"""The record of a distribution, by which its functions are made: their checks and documentation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec

from gradix._core.operators import Array
from gradix.scipy.stats.operands import arguments

P = ParamSpec("P")


class Parameter(NamedTuple):
    """What the documentation says of a parameter, and the condition that it fulfils."""

    text: str
    domain: Callable[[Any], Any] | None = None


def is_positive(x):
    """Whether a parameter is above 0."""
    return x > 0


def is_not_negative(x):
    """Whether a parameter is 0 or more."""
    return x >= 0


def is_possible(p):
    """Whether a parameter is a probability, but not 0."""
    return (p > 0) & (p <= 1)


def is_probability(p):
    """Whether a parameter is a probability."""
    return (p >= 0) & (p <= 1)


_SHARED = {
    "x": Parameter("the points at which it is evaluated"),
    "k": Parameter("the counts at which it is evaluated, floats or integers"),
    "loc": Parameter("the location, by which the distribution is shifted"),
    "scale": Parameter("the scale, by which it is stretched about `loc`; positive", is_positive),
}
_SUMMARIES = {
    "logpdf": "The logarithm of the density of {0}.",
    "pdf": "The density of {0}.",
    "logpmf": "The logarithm of the probability of `k` under {0}.",
    "pmf": "The probability of `k` under {0}.",
    "cdf": "The probability that a draw from {0} is at most {1}.",
    "logcdf": "The logarithm of `cdf`.",
    "sf": "The probability that a draw from {0} exceeds {1}.",
    "logsf": "The logarithm of `sf`.",
    "ppf": "The quantile of {0}, the inverse of `cdf`.",
    "isf": "The inverse of `sf`: the value that a draw exceeds with a given probability.",
}


class Distribution:
    """A distribution, whose functions have their checks and their documentation from here.

    Args:
        name: the name of its module.
        title: what the documentation calls it.
        parameters: what it alone has, or has other words for.
    """

    def __init__(self, name: str, title: str, **parameters: Parameter):
        self.name, self.title, self.parameters = name, title, {**_SHARED, **parameters}

    def given(
        self, example: str, value: str, *, is_weak: bool = True
    ) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
        """A decorator for a formula, which makes it a public function of the same parameters.

        The formula is given arrays of one float dtype. Where a parameter is outside of its domain,
        the first of them is NaN.

        Args:
            example: the arguments of the example in its documentation.
            value: what the example gives.
            is_weak: whether this is weakly typed.
        """

        def function_of(formula: Any) -> Callable[P, Array]:
            name = f"{self.name}.{formula.__name__}"
            places = enumerate(map(self.parameters.get, _names(formula)))
            domains = [(i, p.domain) for i, p in places if p and p.domain]

            def run(*args, **kwargs):
                return formula(*arguments(name, _in_order(formula, args, kwargs), domains))

            return self._documented(run, formula, example, value, is_weak)

        return function_of

    def derived(
        self,
        name: str,
        formula: Callable[..., Array],
        source: Callable[P, Array],
        *others: Callable[P, Array],
        example: str,
        value: str,
        is_weak: bool = True,
    ) -> Callable[P, Array]:
        """The function whose value is a formula of the values of other functions, at the same arguments."""
        sources: Any = (source, *others)
        # The first one tells the parameters; errors shall name the new function.
        like = sources[0].__wrapped__
        form = FunctionType(like.__code__, like.__globals__, name, like.__defaults__)
        form.__module__, form.__qualname__ = like.__module__, name
        form.__annotations__ = like.__annotations__

        def run(*args, **kwargs):
            given = _in_order(form, args, kwargs)
            return formula(*[f(*given) for f in sources])

        return self._documented(run, form, example, value, is_weak)

    def _documented(self, run, form, example: str, value: str, is_weak: bool) -> Any:
        """The public function that runs `run`, and has the name and the parameters of `form`."""
        function, names = wraps(form)(run), _names(form)
        texts = {name: self.parameters[name].text for name in names if name in self.parameters}
        if form.__name__ in ("ppf", "isf"):
            texts[names[0]] = "probabilities, from 0 to 1"
        told = "".join(f"    {name}: {texts[name]}.\n" for name in names)
        summary = _SUMMARIES[form.__name__].format(self.title, names[0])
        weakly = ", weak_type=True" if is_weak else ""
        function.__doc__ = (
            f"{summary}\n\nArgs:\n{told}\nExample:\n"
            f"    >>> from gradix.scipy.stats import {self.name}\n"
            f"    >>> {self.name}.{form.__name__}({example}).round(4) + 0.0\n"
            f"    Array({value}, dtype=float32{weakly})\n"
        )
        return function


def _names(form: FunctionType) -> tuple[str, ...]:
    """The names of the parameters of a function that has no others than positional ones."""
    return form.__code__.co_varnames[: form.__code__.co_argcount]


def _in_order(form: FunctionType, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """All arguments of a call by position, with the defaults of those that are left out."""
    names, defaults = _names(form), form.__defaults__ or ()
    missing = len(names) - len(args)
    if not kwargs and 0 <= missing <= len(defaults):
        return args + defaults[len(defaults) - missing :]
    values = dict(zip(names[len(names) - len(defaults) :], defaults)) | kwargs
    later = names[len(args) :]
    if missing < 0 or not kwargs.keys() <= set(later) or not values.keys() >= set(later):
        return form(*args, **kwargs)  # This raises, and says what is wrong with the arguments.
    return args + tuple(values[name] for name in later)
