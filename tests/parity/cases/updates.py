"""`.at[...]` updates: operations, indices, modes, dtypes, and the update functions of lax."""

import numpy as np

from tests.parity.case import Case
from tests.parity.cases.indexing import environment

OPS = ("set", "add", "multiply", "mul", "divide", "power", "min", "max", "subtract")
INDICES = (
    "0",
    "-1",
    "9",
    "-9",
    "1:4",
    "::2",
    "::-1",
    "i",
    "n",
    "far",
    "mv",
    "None",
    "...",
    "grid",
    "none",
    "[0, 0, 0]",
    "one",
    "()",
)
MATRIX = (
    "0",
    "0, 1",
    ":, 1",
    "i",
    "i, i",
    ":, i",
    "i, 1:3",
    "1:, ::2",
    "mm",
    "m3",
    ":, m4",
    "m3, 0",
    "..., 0",
    "far",
    "far, 0",
    "col, i",
    "grid",
    "0, 0, 0",
    "m > 0",
    "::-1, ::-1",
    "[0, 0], [1, 1]",
)


def cases():
    texts = [f"v.at[{index}].{op}(2.0)" for op in OPS for index in INDICES]
    texts += [f"m.at[{index}].{op}(3)" for op in ("set", "add", "max", "multiply") for index in MATRIX]
    for text in texts + list(values()) + list(modes()) + list(lax_forms()):
        yield Case(text, lambda ns, text=text: eval(text, environment(ns)))
    for text in (
        "v.at[i].set(2.0)",
        "v.at[far].add(1.0)",
        "v.at[one].min(0.0)",
        "v.at[v > 0].set(0.0)",
        "m.at[i, i].multiply(2)",
        "v.at[v > 0].set(v)",
        "v.at[mv].add(1.0)",
        "v.at[i].apply(jnp.sin)",
    ):
        # A traced mask has one meaning when a scalar is written or added.
        scalar = text in ("v.at[v > 0].set(0.0)", "v.at[mv].add(1.0)")
        yield Case(f"jit {text}", lambda ns, text=text: jitted(ns, text), may_work=scalar)
        yield Case(f"vmap {text}", lambda ns, text=text: mapped(ns, text), may_work=scalar)


def values():
    """What is written: arrays that broadcast or do not, other dtypes, scalars."""
    for value in (
        "jnp.arange(3.0)",
        "jnp.arange(3)",
        "[1.0, 2.0, 3.0]",
        "1",
        "True",
        "1j",
        "jnp.ones((2, 3))",
        "jnp.ones((1,))",
        "jnp.ones(2)",
        "jnp.float16(2)",
        "np.arange(3)",
        "None",
        "'a'",
        "jnp.ones((3, 1))",
    ):
        yield f"v.at[i].set({value})"
        yield f"v.at[:3].add({value})"
        yield f"m.at[i, 0].set({value})"
    yield from (
        "m.at[0].set(2.7)",
        "m.at[0].add(2.7)",
        "m.at[0].set(300)",
        "q.at[0].set(300)",
        "b.at[0].set(3)",
        "b.at[0].add(1)",
        "b.at[i].max(True)",
        "h.at[i].add(0.1)",
        "c.at[0].set(2j)",
        "c.at[0].set(1)",
        "s.at[()].set(1)",
        "s.at[None].add(1)",
        "z.at[0].set(1)",
        "z.at[:, 0].set(1)",
        "z.at[none].add(1)",
        "t.at[:, 0].set(jnp.arange(4.0))",
        "t.at[0, :, 1].set(jnp.arange(3.0))",
        "t.at[:, i, i].add(1.0)",
        "t.at[:, i].add(jnp.ones((2, 3, 4)))",
        "t.at[i % 2, :, i].set(jnp.ones((3, 3)))",
        "t.at[..., 1].multiply(2)",
        "q.at[u, :, u].add(1)",
        "v.at[i].apply(jnp.exp)",
        "v.at[0].apply(lambda x: x * 2)",
        "v.at[:2].apply(jnp.negative)",
        "m.at[0].set(jnp.uint8(255))",
        "m.at[0].multiply(0.5)",
        "m.at[0].divide(2)",
        "v.at[0].set(jnp.asarray(1))",
        "v.at[[0, 0, 1]].add(jnp.arange(3.0))",
        "v.at[[2, 2]].multiply(3.0)",
        "v.at[[1, 1, 1]].min(jnp.array([3.0, -9.0, 1.0]))",
        "v.at[i].set(1.0).at[0].add(2.0)",
        "v.at[1.5].set(0)",
        "v.at['a'].set(0)",
        "v.at[0, 0].set(0)",
        "v.at[0] + 1",
    )


def modes():
    for mode in ("drop", "clip", "wrap", "fill", "promise_in_bounds", "nonsense", None):
        index = "i" if mode == "promise_in_bounds" else "far"
        for op in ("set", "add", "max"):
            yield f"v.at[{index}].{op}(2.0, mode={mode!r})"
            yield f"m.at[{index}, 0].{op}(2, mode={mode!r})"
    yield "v.at[9].set(2.0, mode='clip')"
    yield "v.at[-9].set(2.0, mode='drop')"
    yield "v.at[i].add(1.0, indices_are_sorted=False, unique_indices=True)"


def lax_forms():
    for start in ("0", "4", "9", "-1", "-9", "one", "1.5"):
        yield f"lax.dynamic_slice(v, ({start},), (3,))"
        yield f"lax.dynamic_update_slice(v, jnp.ones(2), ({start},))"
        yield f"lax.dynamic_slice_in_dim(v, {start}, 2)"
        yield f"lax.dynamic_index_in_dim(m, {start}, 1)"
        yield f"lax.dynamic_update_index_in_dim(m, jnp.ones(3, int), {start}, 1)"
        yield f"lax.index_in_dim(v, {start})"
    yield "lax.dynamic_slice(v, (0, 0), (3,))"
    yield "lax.dynamic_slice(v, (0,), (9,))"
    yield "lax.dynamic_slice(m, (one, 0), (1, 2))"
    yield "lax.dynamic_slice(m, [1, 2], [2, 2])"
    yield "lax.dynamic_update_slice(m, jnp.ones((1, 2)), (0, 0))"
    yield "lax.dynamic_update_slice(m, jnp.ones((4, 4), int), (0, 0))"
    yield "lax.dynamic_update_slice_in_dim(m, jnp.ones((1, 4), 'int32'), 5, 0)"
    yield "lax.slice(m, (0, 1), (2, 4))"
    yield "lax.slice(m, (0, 1), (2, 4), (1, 2))"
    yield "lax.slice(m, (2, 1), (1, 4))"
    yield "lax.slice(m, (0,), (2,))"
    yield "lax.slice_in_dim(m, 1, 3, axis=1)"
    yield "lax.slice_in_dim(v, 0, 6, stride=4)"


def jitted(ns, text):
    env = environment(ns)
    names = ("v", "m", "i", "far", "one", "mv")
    return ns.jax.jit(lambda traced: eval(text, {**env, **traced}))({name: env[name] for name in names})


def mapped(ns, text):
    """The update of each of two arrays with the same indices."""
    env = environment(ns)
    pair = {name: ns.jnp.stack([env[name], env[name] * np.float32(2).astype(env[name].dtype)]) for name in ("v", "m")}
    return ns.jax.vmap(lambda traced: eval(text, {**env, **traced}))(pair)
