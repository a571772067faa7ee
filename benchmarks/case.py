"""A benchmark: a name, a ratio to aim at, and one piece of code that runs on any library with JAX's interface."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

CASES: dict[str, "Case"] = {}


class Target:
    """A library under test, by name: `x.api` is `gradix` or `jax`, `x.np` its numpy module, and so on."""

    def __init__(self, name: str):
        self.name = name
        self.api: Any = importlib.import_module(name)
        self.np, self.lax, self.random, self.nn = (
            importlib.import_module(f"{name}.{part}") for part in ("numpy", "lax", "random", "nn")
        )
        self.block = self.api.block_until_ready

    def array(self, *shape: int, seed: int = 0) -> Any:
        """Float32 numbers between 0.5 and 1.5, the same for every library."""
        return self.np.asarray(uniform(*shape, seed=seed))


class NumpyTarget(Target):
    """NumPy itself, for the cases that have a NumPy form."""

    def __init__(self) -> None:
        self.name, self.np = "numpy", numpy
        self.block = lambda value: value


class TorchTarget(Target):
    """PyTorch on the CPU, for the cases that have a form there; `x.api` and `x.np` are both `torch`."""

    def __init__(self) -> None:
        self.name, self.api = "torch", importlib.import_module("torch")
        self.np = self.api
        self.nn = importlib.import_module("torch.nn.functional")
        self.block = lambda value: value


def uniform(*shape: int, seed: int = 0) -> numpy.ndarray:
    """Float32 numbers between 0.5 and 1.5."""
    return (numpy.random.default_rng(seed).random(shape) + 0.5).astype(numpy.float32)


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: its name in the table.
        group: cases of a group share a process.
        limit: the ratio of seconds, Gradix to JAX, that is aimed at.
        make: from a target to the function whose calls are timed.
        numpy: the same for NumPy, where NumPy can do the work.
        torch: the same for PyTorch.
        fresh: from a target to a function that prepares each call's argument, untimed.
        alone: whether the case has its own processes, in which its first call is timed.
    """

    name: str
    group: str
    limit: float
    make: Callable[[Target], Callable[..., Any]]
    numpy: Callable[[Target], Callable[..., Any]] | None = None
    torch: Callable[[Target], Callable[..., Any]] | None = None
    fresh: Callable[[Target], Callable[[], Any]] | None = None
    alone: bool = False

    def form(self, library: str) -> Callable[[Target], Callable[..., Any]] | None:
        """What makes the timed function for a library, None where the case has no form there."""
        return {"numpy": self.numpy, "torch": self.torch}.get(library, self.make)


def case(
    name: str, group: str, limit: float, *, numpy: Any = None, torch: Any = None, fresh: Any = None, alone: bool = False
) -> Callable[[Any], Any]:
    """Register a `make` function as a case; `numpy=True` and `torch=True` say that it works for them unchanged."""

    def register(make: Any) -> Any:
        if name in CASES:
            raise ValueError(f"two benchmark cases are called {name!r}")
        peers = (make if form is True else form for form in (numpy, torch))
        CASES[name] = Case(name, group, limit, make, *peers, fresh, alone)
        return make

    return register


def target(name: str) -> Target:
    """The library called `name`."""
    special = {"numpy": NumpyTarget, "torch": TorchTarget}
    return special[name]() if name in special else Target(name)
