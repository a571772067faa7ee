"""What users of other libraries write, and what to write here."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterable

from gradix._base.lazy import lazy_module
from gradix._base.source import SourcePlace

difflib = lazy_module("difflib")
_LAYERS = "layers and models are in libraries, which run on gradix: flax, equinox, haiku"
_OPTIMIZERS = "optimizers are in libraries, which run on gradix: optax"
_LOSSES = "write the formula, or take it from optax"
_SEEDED = "random functions take a key: gradix.random.key(seed)"
_NAMES = {
    "gradix": {
        "Module": _LAYERS,
        "Variable": "write gradix.numpy.array; gradix.grad says of which arguments it takes derivatives",
        "autograd": "write gradix.grad of a function",
        "inference_mode": "derivatives are taken only where gradix.grad asks for them",
        "load": "write gradix.numpy.load for an array; the page on saving shows how to keep a model",
        "optim": _OPTIMIZERS,
        "save": "write gradix.numpy.save for an array; the page on saving shows how to keep a model",
        "seed": _SEEDED,
        "no_grad": "derivatives are taken only where gradix.grad asks for them; gradix.lax.stop_gradient(x) "
        "leaves a value out",
        "enable_grad": "derivatives are taken where gradix.grad asks for them",
        "tensor": "write gradix.numpy.array",
        "Tensor": "write gradix.Array",
        "from_numpy": "write gradix.numpy.asarray",
        "manual_seed": _SEEDED,
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
        "FloatTensor": "write array(x, float32)",
        "LongTensor": "write array(x, int32)",
        "as_tensor": "write asarray",
        "chunk": "write array_split",
        "clamp": "write clip",
        "double_": "write float64",
        "float": "write float32, or Python's float",
        "half": "write float16",
        "index_select": "write take",
        "int": "write int32, or Python's int",
        "long": "write int64, or int32",
        "masked_fill": "write where(mask, value, x)",
        "masked_select": "write x[mask]",
        "object": "arrays hold numbers and booleans",
        "repeat_interleave": "write repeat",
        "topk": "write gradix.lax.top_k",
    },
    "gradix.nn": {
        **dict.fromkeys(
            [
                "BatchNorm2d",
                "Conv1d",
                "Conv2d",
                "Dense",
                "Dropout",
                "Embedding",
                "LSTM",
                "LayerNorm",
                "Linear",
                "Module",
                "ModuleList",
                "Parameter",
                "Sequential",
                "Transformer",
            ],
            _LAYERS,
        ),
        **dict.fromkeys(
            [
                "BCELoss",
                "BCEWithLogitsLoss",
                "CrossEntropyLoss",
                "L1Loss",
                "MSELoss",
                "binary_cross_entropy",
                "cross_entropy",
                "mse_loss",
                "nll_loss",
            ],
            _LOSSES,
        ),
        "functional": "write gradix.nn",
    },
    "gradix.random": {
        "RandomState": _SEEDED,
        "default_rng": _SEEDED,
        "get_state": "keep the key",
        "manual_seed": _SEEDED,
        "rand": "write uniform(key, shape)",
        "randn": "write normal(key, shape)",
        "random": "write uniform(key, shape)",
        "randperm": "write permutation(key, n)",
        "sample": "write uniform(key, shape)",
        "seed": _SEEDED,
        "set_state": "pass the key",
        "shuffle": "write permutation(key, x), which returns a new array",
        "standard_normal": "write normal(key, shape)",
    },
}
# Where functions and types are that a program asks another module for.
_FACES = ("gradix.numpy", "gradix.lax", "gradix.nn", "gradix.random", "gradix")
_OF_MATH = re.compile(r"\b(?:math|cmath)\.(\w+)\(")
_OF_OTHERS = re.compile(r"\b(np|numpy|sp|scipy)\.([\w.]+)\(")
_OF_CHOICES = {
    "max(": "jnp.maximum(a, b) for the larger of two arrays, jnp.max(x) for the largest element",
    "min(": "jnp.minimum(a, b) for the smaller of two arrays, jnp.min(x) for the smallest element",
    "assert ": "gradix.experimental.checkify.check(condition, text), which looks when the program runs",
    "sorted(": "jnp.sort(x), or jnp.argsort(x)",
    "any(": "jnp.any(x)",
    "all(": "jnp.all(x)",
}
_OTHER_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power", "fabs": "abs", "gamma": "scipy.special.gamma",
    "lgamma": "scipy.special.gammaln", "erf": "scipy.special.erf", "erfc": "scipy.special.erfc",
    "dist": "linalg.norm", "prod": "prod", "fsum": "sum",
}  # fmt: skip


def advice(module: str, name: str) -> str:
    """What to write in place of a name that a module lacks, after the text of the error."""
    known = _NAMES.get(module, {}).get(name)
    if known is None:
        face = _face_of(name) if module in _FACES else None
        known = face and f"write {face}.{name}"
    return f": {known}" if known else ""


def _face_of(name: str) -> str | None:
    """The module that has a public name; None if none has it, or while the package is imported."""
    spec = getattr(sys.modules.get("gradix"), "__spec__", None)
    if spec is None or getattr(spec, "_initializing", False):
        return None
    return next((face for face in _FACES if name in dir(lazy_module(face))), None)


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
    if ".item()" in text:
        return "leave out .item(): return the array, and take its number outside of the traced function."
    if re.search(r"\b(?:pickle|cloudpickle|joblib)\.dumps?\(", text):
        return "return the array, and pickle it outside of the traced function."
    if re.search(r"""\b[rR]?[fF][rR]?["']""", text) or "print(" in text:
        return (
            'gradix.debug.print("{}", x), which prints when the program runs, or look inside of\n'
            "`with gradix.debug.values():`."
        )
    return ""


def of_the_choice(place: SourcePlace) -> str:
    """What to write in place of a line that asks whether a traced value is true, as a line; may be empty."""
    text = linecache.getline(place.file, place.line)
    found = [advice for word, advice in _OF_CHOICES.items() if re.search(r"(?<![\w.])" + re.escape(word), text)]
    return f"{found[0]};\n" if found else ""


def of_the_call(place: SourcePlace) -> str:
    """What to write in place of a line that passes a traced value to NumPy or SciPy, as a line; may be empty."""
    for library, name in _OF_OTHERS.findall(linecache.getline(place.file, place.line)):
        if name.startswith("random."):
            return f"the functions of gradix.random, which take a key, in place of {library}.{name};\n"
        module: object = lazy_module("gradix.numpy" if library in ("np", "numpy") else "gradix.scipy")
        path, _, last = name.rpartition(".")
        for part in path.split(".") if path else ():
            module = getattr(module, part, None)
        if last in dir(module):
            return f"{'jnp' if library in ('np', 'numpy') else 'gradix.scipy'}.{name} in place of {library}.{name};\n"
    return ""


def close_to(name: str, known: Iterable[str]) -> str:
    """The known name that is closest to one, after the text of an error; may be empty."""
    names = list(known)
    found = [n for n in names if n.lower() == name.lower()] or difflib.get_close_matches(name, names, 1, 0.75)
    return f". Did you mean {found[0]!r}?" if found else ""
