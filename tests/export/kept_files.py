"""Programs whose files are kept in tests/data/exported, as versions of this library and of JAX wrote them.

python -m tests.export.kept_files gradix FOLDER      # or jax, with the version that is to write them
"""

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "data" / "exported"


def layers(jax, jnp, p, x):
    return {"y": jnp.tanh(x @ p["w"] + p["b"]), "n": x.shape[0]}


def loops(jax, jnp, x):
    y, _ = jax.lax.scan(lambda c, r: (c * 0.5 + r, None), jnp.zeros(3), x)
    return (
        jax.lax.while_loop(lambda y: (y**2).sum() > 1.0, lambda y: y * 0.5, y),
        jnp.sort(x, axis=0),
        jnp.cumsum(x, axis=0)[-1],
    )


def keys(jax, jnp, k, x):
    return jax.random.uniform(k, (3,)), x[None]


def platforms(jax, jnp, x):
    return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2)


def solve(jax, jnp, a, b):
    return jnp.linalg.solve(a, b)


def programs(jax, symbolic_shape) -> dict:
    """By name: the function, the types of its arguments, options of `export`, and the orders of gradients in the file."""
    (n,) = symbolic_shape("n", constraints=["n <= 50"])
    spec = lambda *shape, dtype="float32": jax.ShapeDtypeStruct(shape, dtype)
    return {
        "layers": (layers, ({"w": spec(3, 2), "b": spec(2)}, spec(n, 3)), {}, 1),
        "loops": (loops, (spec(n, 3),), {}, 0),
        "keys": (keys, (spec(dtype=jax.random.key(0).dtype), spec(2, dtype="bfloat16")), {}, 0),
        "platforms": (platforms, (spec(n),), {"platforms": ("tpu", "cpu")}, 0),
        "solve": (solve, (spec(3, 3), spec(3, 2)), {}, 2),
    }


def arguments(jax) -> dict:
    """By name, what the programs are called with."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3)).astype("f4")
    return {
        "layers": ({"w": x[:3, :2], "b": x[0, :2]}, x),
        "loops": (x,),
        "keys": (jax.random.key(7), jax.numpy.ones(2, "bfloat16")),
        "platforms": (x[:, 0],),
        "solve": (x[:3] + 3 * np.eye(3, dtype="f4"), x[:3, :2]),
    }


def main(library: str, folder: str) -> None:
    jax = __import__(library)
    export = __import__(f"{library}.export", fromlist=["export"])
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, (f, specs, options, order) in programs(jax, export.symbolic_shape).items():

        def program(*args, f=f):
            return f(jax, jax.numpy, *args)

        program.__name__ = name
        blob = export.export(jax.jit(program), **options)(*specs).serialize(vjp_order=order)
        (Path(folder) / f"{name}.bin").write_bytes(blob)


if __name__ == "__main__":
    main(*sys.argv[1:])
