"""Images of other sizes, moved and scaled; trees as vectors."""

import numpy as np

from tests.parity.case import Case, call, sample

METHODS = ("nearest", "linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area")
SIZES = (
    ((5,), (9,)),
    ((9,), (4,)),
    ((3, 4, 2), (6, 3, 2)),
    ((7, 5), (7, 11)),
    ((1,), (3,)),
    ((8, 8), (3, 20)),
    ((10,), (1,)),
)
MOVES = (
    ((5, 4), (7, 4), (0,), (1.3,), (0.4,)),
    ((5, 4), (3, 6), (0, 1), (0.5, 1.7), (0.2, -1.1)),
    ((6,), (6,), (0,), (1.0,), (2.0,)),
    ((4, 5, 3), (8, 10, 3), (-3, 1), (2.0, 2.0), (0.0, 0.5)),
)


def cases():
    for shape, size in SIZES:
        for method in METHODS:
            for antialias in (True, False):
                yield call("image.resize", sample("float32", shape, 1), size, method, antialias=antialias, rtol=1e-4)
    for dtype, rtol in (
        ("int32", 1e-4),
        ("uint8", 1e-4),
        ("complex64", 1e-4),
        ("float16", 4e-3),
        ("bfloat16", 3e-2),
        ("bool", 1e-4),
    ):
        for method in ("nearest", "linear", "cubic"):
            yield call("image.resize", sample(dtype, (3, 4), 2), (5, 3), method, rtol=rtol)
    for shape, size, axes, scale, translation in MOVES:
        for method in METHODS:
            for antialias in (True, False):
                yield call(
                    "image.scale_and_translate",
                    sample("float32", shape, 3),
                    size,
                    axes,
                    np.array(scale, np.float32),
                    np.array(translation, np.float32),
                    method,
                    antialias=antialias,
                    rtol=1e-4,
                )
    yield Case(
        "grad of resize",
        lambda ns: ns.jax.grad(lambda x: (ns.image.resize(x, (7, 3), "cubic") ** 2).sum())(
            ns.jnp.asarray(sample("float32", (4, 4), 4))
        ),
        1e-4,
    )
    yield Case(
        "grad of the scale",
        lambda ns: ns.jax.grad(
            lambda s: (
                ns.image.scale_and_translate(
                    ns.jnp.asarray(sample("float32", (5,), 5)), (7,), (0,), s, s * 0.1, "cubic"
                )
                ** 2
            ).sum()
        )(ns.jnp.array([1.3])),
        1e-3,
    )
    x = sample("float32", (3, 4), 6)
    yield call("image.resize", x, (3,), "linear")
    yield call("image.resize", x, 3, "linear")
    yield call("image.resize", x[0], 7, "linear")
    yield call("image.resize", x[0], "a", "linear")
    yield call("image.scale_and_translate", x[0], 7, (0,), np.ones(1, np.float32), np.ones(1, np.float32), "linear")
    yield call("image.resize", x, (6, 4), "best")
    yield call("image.scale_and_translate", x, (6, 4), (5,), np.ones(1, np.float32), np.zeros(1, np.float32), "linear")
    yield from _trees()


def _trees():
    def there_and_back(ns, tree):
        flat, unravel = ns.flatten_util.ravel_pytree(tree)
        return flat, unravel(flat)

    a, b = sample("float32", (2, 3), 7), sample("int32", (3,), 8)
    trees = {
        "one": lambda ns: ns.jnp.asarray(a),
        "dict": lambda ns: {"b": ns.jnp.asarray(b), "a": ns.jnp.asarray(a)},
        "number": lambda ns: [ns.jnp.asarray(b), 2.0],
        "none": lambda ns: [],
        "complex": lambda ns: [1j, ns.jnp.asarray(a)],
        "bool": lambda ns: (ns.jnp.asarray(b), ns.jnp.asarray([True])),
        "numbers": lambda ns: [1, 2.0],
        "half": lambda ns: [ns.jnp.ones(2, "bfloat16"), ns.jnp.asarray(b), 2.0],
    }
    for name, tree in trees.items():
        yield Case(f"ravel_pytree {name}", lambda ns, tree=tree: there_and_back(ns, tree(ns)))
    for name, wrong in {"short": lambda ns, v: v[:2], "dtype": lambda ns, v: v.astype("float16")}.items():
        yield Case(
            f"ravel_pytree wrong {name}",
            lambda ns, wrong=wrong: ns.flatten_util.ravel_pytree(trees["dict"](ns))[1](
                wrong(ns, ns.flatten_util.ravel_pytree(trees["dict"](ns))[0])
            ),
        )
