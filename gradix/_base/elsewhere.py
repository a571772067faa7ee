"""What users of other libraries write, and what to write here."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable

from gradix._base.lazy import lazy_module
from gradix._base.source import SourcePlace

difflib = lazy_module("difflib")
_NAMES = {
    "gradix": {
        "no_grad": "derivatives are taken only where gradix.grad asks for them; gradix.lax.stop_gradient(x) "
        "leaves a value out",
        "enable_grad": "derivatives are taken where gradix.grad asks for them",
        "tensor": "write gradix.numpy.array",
        "Tensor": "write gradix.Array",
        "from_numpy": "write gradix.numpy.asarray",
        "manual_seed": "random functions take a key: gradix.random.key(seed)",
        "cuda": "write gradix.devices('cuda')",
        "compile": "write gradix.jit",
        "function": "write gradix.jit",
        "GradientTape": "write gradix.grad of a function",
        "device": "write gradix.default_device(device), or gradix.devices() for those there are",
    },
    "gradix.numpy": {
        "cat": "write concatenate",
        "tensor": "write array",
        "from_numpy": "write asarray",
        "sigmoid": "write gradix.nn.sigmoid",
        "relu": "write gradix.nn.relu",
        "softmax": "write gradix.nn.softmax",
        "gather": "write take_along_axis",
        "scatter": "write x.at[index].set(values)",
        "bmm": "write matmul",
        "mm": "write matmul",
        "randn": "write gradix.random.normal(key, shape)",
        "rand": "write gradix.random.uniform(key, shape)",
        "random": "write gradix.random, whose functions take a key",
        "norm": "write linalg.norm",
        "lerp": "write x + t * (y - x)",
        "unsqueeze": "write expand_dims",
        "numel": "write size",
    },
}
_OF_MATH = re.compile(r"\b(?:math|cmath)\.(\w+)\(")
_OTHER_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power", "fabs": "abs", "gamma": "scipy.special.gamma",
    "lgamma": "scipy.special.gammaln", "erf": "scipy.special.erf", "erfc": "scipy.special.erfc",
    "dist": "linalg.norm", "prod": "prod", "fsum": "sum",
}  # fmt: skip


def advice(module: str, name: str) -> str:
    """What to write in place of a name that a module lacks, after the text of the error."""
    known = _NAMES.get(module, {}).get(name)
    return f": {known}" if known else ""


def of_object(kind: type) -> str:
    """What to do with an object of a class of the user's where arrays are expected."""
    return (
        f"If a {kind.__name__} holds arrays, make its class a pytree: "
        "gradix.tree_util.register_dataclass or gradix.tree_util.register_pytree_node_class."
    )


def of_the_line(place: SourcePlace) -> str:
    """What to write in place of a line that asks for the number of a traced value; may be empty."""
    text = linecache.getline(place.file, place.line)
    found = _OF_MATH.search(text)
    if found is not None:
        name = _OTHER_NAMES.get(found[1], found[1])
        where = "gradix" if name.startswith("scipy.") else "jnp"
        return f"{where}.{name}, which takes arrays; math.{found[1]} takes Python numbers only."
    if re.search(r"""\b[rR]?[fF][rR]?["']""", text) or "print(" in text:
        return (
            'gradix.debug.print("{}", x), which prints when the program runs, or look inside of\n'
            "`with gradix.debug.values():`."
        )
    return ""


def close_to(name: str, known: Iterable[str]) -> str:
    """The known name that is closest to one, after the text of an error; may be empty."""
    found = difflib.get_close_matches(name, list(known), 1, 0.75)
    return f". Did you mean {found[0]!r}?" if found else ""
