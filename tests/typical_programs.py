"""Programs as users write them with types, for type checkers: none of them has anything to say. `tests/test_typing.py` asks them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

import numpy as np

import gradix
import gradix.numpy as jnp
from gradix import Array, lax, nn, random
from gradix.extend.core import ClosedJaxpr
from gradix.typing import ArrayLike

Params = dict[str, Array]


# -- a network, trained ----------------------------------------------------------------------------------------------


def init(key: Array, sizes: list[int]) -> list[Params]:
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)} for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(params: list[Params], x: Array) -> Array:
    for layer in params[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params: list[Params], x: Array, y: Array) -> Array:
    return -jnp.mean(jnp.sum(nn.log_softmax(predict(params, x)) * nn.one_hot(y, 10), axis=-1))


@gradix.jit
def step(params: list[Params], x: Array, y: Array) -> tuple[list[Params], Array]:
    value, grads = gradix.value_and_grad(loss)(params, x, y)
    return gradix.tree.map(lambda p, g: p - 1e-3 * g, params, grads), value


def batches(seed: int) -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng(seed)
    while True:
        yield jnp.asarray(rng.normal(size=(8, 4)), dtype=jnp.float32), jnp.asarray(rng.integers(0, 10, 8))


def train() -> float:
    params = init(random.key(0), [4, 16, 10])
    value: Array = jnp.inf * jnp.ones(())
    for _, (x, y) in zip(range(3), batches(0)):
        params, value = step(params, x, y)
    x, y = next(batches(1))
    accuracy = (jnp.argmax(predict(params, x), axis=-1) == y).mean()
    print(f"{value:.3f} {accuracy.item():.2f}")
    return float(value)


# -- state in named tuples and dataclasses, loops ----------------------------------------------------------------------


class Adam(NamedTuple):
    mean: Params
    square: Params
    updates: Array


@gradix.tree_util.register_dataclass
@dataclass
class State:
    position: Array
    velocity: Array
    steps: int = 0


def update(params: Params, state: Adam, grads: Params) -> tuple[Params, Adam]:
    mean = gradix.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, grads)
    square = gradix.tree.map(lambda s, g: 0.999 * s + 0.001 * g**2, state.square, grads)
    new = gradix.tree.map(lambda p, m, s: p - 0.01 * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return new, Adam(mean, square, state.updates + 1)


def simulate(state: State, dt: ArrayLike, n: int) -> tuple[State, Array]:
    def body(s: State, _: Any) -> tuple[State, Array]:
        velocity = s.velocity - jnp.asarray(dt) * s.position
        return State(s.position + dt * velocity, velocity, s.steps), s.position

    return lax.scan(body, state, None, length=n)


def newton(f: Callable[[Array], Array], x: Array) -> Array:
    slope = gradix.grad(f)

    def going(carry: tuple[Array, int]) -> Array:
        return jnp.abs(f(carry[0])) > 1e-6

    def turn(carry: tuple[Array, int]) -> tuple[Array, int]:
        x, n = carry
        return x - f(x) / slope(x), n + 1

    root, _ = lax.while_loop(going, turn, (x, 0))
    return lax.cond(root > 0, lambda r: r, lambda r: -r, root)


# -- rules, transformations and partial functions ------------------------------------------------------------------------


@gradix.custom_vjp
def clipped(x: Array) -> Array:
    return x


def clipped_fwd(x: Array) -> tuple[Array, None]:
    return x, None


def clipped_bwd(_: None, ct: Array) -> tuple[Array]:
    return (jnp.clip(ct, -1.0, 1.0),)


clipped.defvjp(clipped_fwd, clipped_bwd)


@gradix.custom_jvp
def softplus(x: Array) -> Array:
    return jnp.log1p(jnp.exp(x))


@softplus.defjvp
def softplus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return softplus(x), nn.sigmoid(x) * t


@functools.partial(gradix.jit, static_argnames=("n",), donate_argnums=0)
def repeated(x: Array, *, n: int) -> Array:
    return functools.reduce(lambda a, _: a * x, range(n), x)


@functools.partial(gradix.vmap, in_axes=(0, None))
def distances(a: Array, b: Array) -> Array:
    return jnp.linalg.norm(a - b, axis=-1)


def derivatives(x: Array) -> tuple[Array, Array, Array]:
    y, pull = gradix.vjp(jnp.sin, x)
    primal, tangent = gradix.jvp(jnp.cos, (x,), (jnp.ones_like(x),))
    hessian = gradix.hessian(lambda v: jnp.sum(v**3))(x)
    return pull(y)[0], primal + tangent, jnp.diag(hessian)


# -- arrays ----------------------------------------------------------------------------------------------------------


def arrays(x: Array, i: int) -> Array:
    rows, columns = x.shape
    total: Array = x.sum(axis=0, keepdims=True) + x.T[:columns].mean() - x[i] * 2 ** x[:, None].max() // 3 % 5
    mask: Array = (x > 0) & ~(x == 1) | (x != 2)
    changed = x.at[0, 1:].set(0.0).at[mask].multiply(2).at[i].add(x[0])
    parts = jnp.split(jnp.concatenate([changed, x]), 2, axis=0)
    text: str = str(x.dtype)
    size: int = x.size + x.ndim + rows + len(text) + len(parts)
    host: np.ndarray = np.asarray(x)
    number = float(x[0, 0]) + int(x[0, 0]) + x.item(0)
    stacked = jnp.stack([jnp.where(mask, x, -x), jnp.einsum("ij,jk->ik", x, x.T @ x)])
    values, indices = lax.top_k(x, 1)
    return (
        stacked.reshape(-1)[:size].astype(jnp.float32)
        + host.sum()
        + number
        + total.sum()
        + values.sum()
        + indices.sum()
    )


def sampled(seed: int) -> dict[str, Array]:
    key, *rest = random.split(random.key(seed), 4)
    draws = [random.uniform(rest[0], (3,)), random.categorical(rest[1], jnp.zeros(5)), random.permutation(rest[2], 4)]
    return {"key": key} | {str(i): d for i, d in enumerate(draws)}


# -- what checkers know of results -------------------------------------------------------------------------------------


def known(x: Array) -> None:
    """Each transformation keeps the type of what the function returns."""

    def pair(a: Array, b: Array) -> tuple[Array, int]:
        return a * b, 1

    def body(carry: Adam, row: Array) -> tuple[Adam, Array]:
        return carry._replace(updates=carry.updates + 1), row * 2

    adam = Adam({"w": x}, {"w": x}, jnp.int32(0))
    assert_type(gradix.jit(pair)(x, x), tuple[Array, int])
    assert_type(gradix.vmap(pair)(x, x), tuple[Array, int])
    assert_type(gradix.checkpoint(pair)(x, x), tuple[Array, int])
    assert_type(gradix.vjp(pair, x, x)[0], tuple[Array, int])
    assert_type(gradix.linearize(pair, x, x)[0], tuple[Array, int])
    assert_type(clipped(x), Array)
    assert_type(softplus(x), Array)
    assert_type(lax.scan(body, adam, x), tuple[Adam, Array])
    assert_type(lax.while_loop(lambda a: a.updates < 3, lambda a: body(a, x)[0], adam), Adam)
    assert_type(lax.fori_loop(0, 3, lambda i, a: body(a, x)[0], adam), Adam)
    assert_type(lax.map(jnp.sin, x), Array)
    assert_type(x.at[0].set(1.0), Array)
    assert_type(jnp.where(x > 0, x, 0), Array)
    assert_type(jnp.where(x > 0), tuple[Array, ...])
    assert_type(gradix.make_jaxpr(jnp.sin)(x), ClosedJaxpr)
    assert_type(jnp.add(x, 1) * jnp.maximum(x, 0), Array)
    assert_type(jnp.logical_and(x > 0, x < 1), Array)
    assert_type(jnp.linspace(0, 1, 3), Array)
    assert_type(jnp.linspace(0, 1, 3, retstep=True), tuple[Array, Array])
    assert_type(jnp.linalg.svd(jnp.eye(2)), tuple[Array, Array, Array])
    assert_type(jnp.linalg.svd(jnp.eye(2), compute_uv=False), Array)
    assert_type(jnp.average(x, weights=x), Array)
    assert_type(jnp.unique(x), Array)
    assert_type(jnp.meshgrid(x, x), list[Array])
    assert_type(lax.top_k(x, 1), list[Array])
    assert_type(lax.stop_gradient(adam), Adam)
    assert_type(gradix.block_until_ready(adam), Adam)
    assert_type(jnp.inner(x, x), Array)


# -- options of the transformations --------------------------------------------------------------------------------------


@functools.partial(gradix.jit, static_argnums=(1, 2), static_argnames="scale", inline=True)
def powers(x: Array, n: int, reverse: bool = False, *, scale: float = 1.0) -> Array:
    rows = jnp.stack([scale * x**i for i in range(n)])
    return rows[::-1] if reverse else rows


@gradix.jit(donate_argnums=0)
def moved(x: Array) -> Array:
    return x + 1


class Metrics(NamedTuple):
    error: Array
    size: int


def measured(params: Params, batch: tuple[Array, Array], scale: float = 1.0) -> tuple[Array, Metrics]:
    x, y = batch
    error = scale * jnp.mean((x @ params["w"] - y) ** 2)
    return error, Metrics(error, x.shape[0])


def options(x: Array) -> Array:
    batch, params = (jnp.ones((4, 3)), jnp.ones(4)), {"w": x}
    (error, metrics), grads = gradix.value_and_grad(measured, has_aux=True)(params, batch)
    only, aux = gradix.grad(measured, argnums=0, has_aux=True)(params, batch, scale=2.0)
    first, second = gradix.grad(lambda a, b: jnp.vdot(a, b), argnums=(0, 1))(x, x)
    total: Array = error + metrics.error + grads["w"].sum() + only["w"].sum() + aux.size + first.sum() + second[0]

    each = gradix.vmap(lambda p, row: p["w"] @ row + p["b"], in_axes=({"w": None, "b": 0}, 0), out_axes=0)
    named = gradix.vmap(lambda v: v - lax.pmean(v, "rows"), axis_name="rows")
    total += each({"w": x, "b": jnp.ones(4)}, batch[0]).sum() + named(batch[0]).sum()

    def body(carry: tuple[Array, int], row: Array) -> tuple[tuple[Array, int], dict[str, Array]]:
        (state, n) = carry
        return (state + row, n + 1), {"row": row, "norm": jnp.linalg.norm(row)}

    (state, n), rows = lax.scan(body, (x, 0), batch[0], reverse=True, unroll=2)
    total += state.sum() + n + rows["norm"].sum()
    total += lax.cond(total > 0, lambda t, v: t + v.sum(), lambda t, v: t - v.sum(), total, x)
    total += lax.switch(jnp.int32(1), [jnp.sin, jnp.cos, lambda t: t**2], total)
    total = lax.fori_loop(0, 3, lambda i, t: t * 0.5 + i, total)
    a, b = random.split(random.key(0))
    keys = random.split(random.fold_in(a, 3), (2, 3))
    draws = gradix.vmap(gradix.vmap(lambda k: random.normal(k, (2,))))(keys)
    total += random.bernoulli(b, 0.5).sum() + draws.mean() + random.randint(b, (2,), 0, 5).sum() + random.choice(b, x)

    paths = gradix.tree.map_with_path(lambda path, leaf: gradix.tree_util.keystr(path), params)
    sizes = sum(leaf.size for leaf in gradix.tree.leaves(params)) + len(paths)
    big = gradix.tree.reduce(lambda t, leaf: t + leaf.sum(), params, jnp.zeros(()))
    flat, unravel = gradix.flatten_util.ravel_pytree(params)
    solved, _ = gradix.scipy.sparse.linalg.cg(lambda v: 2 * v, flat)
    mesh = gradix.make_mesh((1,), ("x",), axis_types=(gradix.sharding.AxisType.Auto,))
    placed = gradix.device_put(jnp.ones(2), gradix.NamedSharding(mesh, gradix.P("x")))
    spread = gradix.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=gradix.P("x"), out_specs=gradix.P())
    with gradix.debug_nans(True), gradix.default_matmul_precision("highest"):
        total += spread(placed).sum() + placed.sharding.num_devices + solved.sum() + unravel(flat)["w"].sum()
    return total + sizes + big + powers(x, 2, True, scale=0.5).sum() + moved(x + 0).sum()


# -- stages, devices, programs ---------------------------------------------------------------------------------------


def compiled(x: Array) -> Array:
    lowered = gradix.jit(jnp.sin).lower(x)
    text: str = lowered.as_text()
    program = lowered.compile()
    shape = gradix.eval_shape(jnp.sin, x)
    jaxpr = gradix.make_jaxpr(jnp.sin)(x)
    return program(x).block_until_ready() + len(text) + len(shape.shape) + len(jaxpr.eqns)


def divided(x: Array) -> Array:
    mesh = gradix.make_mesh((gradix.device_count(),), ("rows",))
    sharding = gradix.NamedSharding(mesh, gradix.P("rows"))
    return gradix.device_put(x, sharding)


@gradix.jit
def checked(x: Array) -> Array:
    gradix.debug.print("x = {}", x)
    with gradix.named_scope("root"):
        return gradix.checkpoint(jnp.sqrt)(x)


def main() -> None:
    leaves, tree = gradix.tree.flatten({"a": jnp.ones(2), "b": [1.0, None]})
    again = gradix.tree.unflatten(tree, leaves)
    assert gradix.tree.structure(again) == tree
    root = newton(lambda v: v**2 - 2, jnp.float32(1.0))
    print(
        root,
        train(),
        simulate(State(root, root), 0.1, 3)[0].position,
        repeated(root + 0, n=2),
        derivatives(jnp.ones(2)),
    )
    print(
        distances(jnp.ones((3, 2)), jnp.zeros(2)),
        arrays(jnp.ones((3, 3)), 0),
        sampled(0),
        compiled(root),
        checked(root),
    )
    known(jnp.ones(3))
    print(options(jnp.ones(3)))
    print(divided(jnp.arange(gradix.device_count())), softplus(root), gradix.grad(clipped)(root))


if __name__ == "__main__":
    main()
