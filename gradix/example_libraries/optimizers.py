"""Optimizers as triples of functions.

The functions are `init_fn(params)`, `update_fn(step, grads, state)` and `params_fn(state)`. This is
a small library for learning and for small programs; use optax for large ones.

Example:
    >>> import gradix
    >>> from gradix.example_libraries import optimizers
    >>> opt = optimizers.sgd(0.25)
    >>> state = opt.init_fn({"x": 1.0})
    >>> for step in range(3):
    ...     grads = gradix.grad(lambda p: p["x"] ** 2)(opt.params_fn(state))
    ...     state = opt.update_fn(step, grads, state)
    >>> float(opt.params_fn(state)["x"])
    0.125
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradix import numpy as jnp
from gradix._base.listing import own_names as _own_names
from gradix._base.tree import (
    register_pytree_node as _register_pytree_node,
    tree_flatten as _flatten,
    tree_leaves as _leaves,
    tree_map as _tree_map,
    tree_unflatten as _unflatten,
)
from gradix.example_libraries._schedules import (
    Schedule,
    constant as constant,
    exponential_decay as exponential_decay,
    inverse_time_decay as inverse_time_decay,
    make_schedule,
    piecewise_constant as piecewise_constant,
    polynomial_decay as polynomial_decay,
)

if TYPE_CHECKING:
    from gradix._core.operators import Array

InitFn = Callable[[Any], "OptimizerState"]
UpdateFn = Callable[[Any, Any, "OptimizerState"], "OptimizerState"]
ParamsFn = Callable[["OptimizerState"], Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer.

    Attributes:
        packed_state: for each parameter, the list of the arrays of its state.
        tree_def: the tree of the parameters.
        subtree_defs: for each parameter, the tree of its state.

    Example:
        >>> from gradix.example_libraries import optimizers
        >>> state = optimizers.momentum(0.1, mass=0.9).init_fn({"w": 1.0})
        >>> state.packed_state, state.tree_def
        ([[1.0, Array(0., dtype=float32, weak_type=True)]], PyTreeDef({'w': *}))
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


_register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda trees, children: OptimizerState(children[0], *trees),
)


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    Example:
        >>> from gradix.example_libraries import optimizers
        >>> init_fn, update_fn, params_fn = optimizers.sgd(0.5)
        >>> float(params_fn(update_fn(0, 2.0, init_fn(3.0))))
        2.0
    """

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., tuple]) -> Callable[..., Optimizer]:
    """A decorator that makes an optimizer of pytrees of arrays of one for a single array.

    Args:
        opt_maker: a function that returns `init(x) -> state`, `update(step, grad, state) -> state`
            and `get(state) -> x` for one array.

    Raises:
        TypeError: `update_fn` was called with gradients of another structure than the parameters,
            or `update` returned a state of another structure.

    Example:
        >>> @optimizer
        ... def descent(rate):
        ...     return lambda x: x, lambda i, g, x: x - rate * g, lambda x: x
        >>> opt = descent(0.5)
        >>> opt.params_fn(opt.update_fn(0, (2.0,), opt.init_fn((1.0,))))
        (0.0,)
    """

    @functools.wraps(opt_maker)
    def made(*args, **kwargs) -> Optimizer:
        init, update, get = opt_maker(*args, **kwargs)

        def init_fn(params) -> OptimizerState:
            leaves, tree = _flatten(params)
            pairs = [_flatten(init(x)) for x in leaves]
            return OptimizerState([states for states, _ in pairs], tree, tuple([t for _, t in pairs]))

        def update_fn(i, grads, state: OptimizerState) -> OptimizerState:
            leaves, tree = _flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the "
                    "parameter tree structure with which it was initialized: parameter tree "
                    f"{state.tree_def} and grad tree {tree}. Pass the gradient of all parameters."
                )
            old = [_unflatten(t, s) for t, s in zip(state.subtree_defs, state.packed_state)]
            pairs = [_flatten(update(i, g, s)) for g, s in zip(leaves, old)]
            for (_, new), was, s in zip(pairs, state.subtree_defs, old):
                if new != was:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its "
                        f"input structure: input {was} and output {new}, from the state {s}."
                    )
            return OptimizerState([s for s, _ in pairs], tree, state.subtree_defs)

        def params_fn(state: OptimizerState) -> Any:
            return _unflatten(
                state.tree_def, [get(_unflatten(t, s)) for t, s in zip(state.subtree_defs, state.packed_state)]
            )

        return Optimizer(init_fn, update_fn, params_fn)

    return made


# -- optimizers ------------------------------------------------------------------------------------


@optimizer
def sgd(step_size: float | Callable[[Any], Any]) -> Any:
    """Gradient descent.

    Args:
        step_size: a number, or a schedule, which is a function of the step.

    Example:
        >>> opt = sgd(0.1)
        >>> round(float(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(1.0)))), 6)
        0.9
    """
    rate = make_schedule(step_size)
    return lambda x0: x0, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Schedule, mass: float) -> Any:
    """Gradient descent with momentum (Polyak, 1964).

    Args:
        step_size: a number or a schedule.
        mass: the factor of the velocity in each step.

    Example:
        >>> opt = momentum(0.1, mass=0.9)
        >>> round(float(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(1.0)))), 6)
        0.9
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_zeros, update, _first


@optimizer
def nesterov(step_size: Schedule, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum (1983), in the form of Sutskever et al. (2013).

    Args:
        step_size: a number or a schedule.
        mass: the factor of the velocity in each step.

    Example:
        >>> opt = nesterov(0.1, mass=0.9)
        >>> round(float(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(1.0)))), 6)
        0.81
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _with_zeros, update, _first


@optimizer
def adagrad(step_size: float | Callable[[Any], Any], momentum: float | Array = 0.9) -> Any:
    """Adagrad (Duchi, Hazan and Singer, 2011), with momentum of the scaled gradients.

    Args:
        step_size: a number or a schedule.
        momentum: the factor of the velocity in each step.

    Example:
        >>> opt = adagrad(0.1)
        >>> opt.init_fn({"w": 1.0}).tree_def.num_leaves
        1
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, velocity = state
        squares = squares + jnp.square(g)
        scaled = g * jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
        velocity = (1.0 - momentum) * scaled + momentum * velocity
        return x - rate(i) * velocity, squares, velocity

    return _with_two_zeros, update, _first


@optimizer
def rmsprop(step_size: float | Callable[[Any], Any], gamma: float | Array = 0.9, eps: float | Array = 1e-8) -> Any:
    """RMSProp (Tieleman and Hinton, 2012).

    Args:
        step_size: a number or a schedule.
        gamma: the factor of the mean square in each step.
        eps: a number that is added to the mean square.

    Example:
        >>> opt = rmsprop(0.1)
        >>> float(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(1.0)))) < 1.0
        True
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros, update, _first


@optimizer
def rmsprop_momentum(
    step_size: float | Callable[[Any], Any],
    gamma: float | Array = 0.9,
    eps: float | Array = 1e-8,
    momentum: float | Array = 0.9,
) -> Any:
    """RMSProp with momentum.

    Args:
        step_size: a number or a schedule.
        gamma: the factor of the mean square in each step.
        eps: a number that is added to the mean square.
        momentum: the factor of the velocity in each step.

    Example:
        >>> opt = rmsprop_momentum(0.1)
        >>> float(opt.params_fn(opt.update_fn(0, 1.0, opt.init_fn(1.0)))) < 1.0
        True
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + rate(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_two_zeros, update, _first


@optimizer
def adam(
    step_size: float | Callable[[Any], Any],
    b1: float | Array = 0.9,
    b2: float | Array = 0.999,
    eps: float | Array = 1e-8,
) -> Any:
    """Adam (Kingma and Ba, 2014).

    Args:
        step_size: a number or a schedule.
        b1: the factor of the mean in each step.
        b2: the factor of the mean square in each step.
        eps: a number that is added to the root of the mean square.

    Example:
        >>> opt = adam(0.1)
        >>> round(float(opt.params_fn(opt.update_fn(0, 3.0, opt.init_fn(1.0)))), 4)
        0.9
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        unbiased = mean / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        scale = squares / (1 - jnp.asarray(b2, mean.dtype) ** (i + 1))
        return x - rate(i) * unbiased / (jnp.sqrt(scale) + eps), mean, squares

    return _with_two_zeros, update, _first


@optimizer
def adamax(
    step_size: float | Callable[[Any], Any],
    b1: float | Array = 0.9,
    b2: float | Array = 0.999,
    eps: float | Array = 1e-8,
) -> Any:
    """Adamax (Kingma and Ba, 2014): Adam with the largest gradient instead of the mean square.

    Args:
        step_size: a number or a schedule.
        b1: the factor of the mean in each step.
        b2: the factor of the largest gradient in each step.
        eps: a number that is added to the largest gradient.

    Example:
        >>> opt = adamax(0.1)
        >>> round(float(opt.params_fn(opt.update_fn(0, 3.0, opt.init_fn(1.0)))), 4)
        0.9
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        return (x - (rate(i) / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))) * mean / (largest + eps), mean, largest)

    return _with_two_zeros, update, _first


@optimizer
def sm3(step_size: float | Callable[[Any], Any], momentum: float | Array = 0.9) -> Any:
    """SM3 (Anil, Gupta, Koren and Singer, 2019), which keeps a number for each index of each axis.

    Args:
        step_size: a number or a schedule.
        momentum: the factor of the velocity in each step.

    Example:
        >>> opt = sm3(0.1)
        >>> [s.shape for s in opt.init_fn(jnp.ones((2, 3))).packed_state[0]]
        [(2, 3), (2, 3), (2,), (3,)]
    """
    rate = make_schedule(step_size)

    def init(x0):
        x0 = jnp.asarray(x0)
        return x0, jnp.zeros_like(x0), [jnp.zeros(n, x0.dtype) for n in x0.shape or ((),)]

    def update(i, g, state):
        x, velocity, covers = state
        along = [v.reshape([-1 if k == axis else 1 for k in range(x.ndim)]) for axis, v in enumerate(covers)]
        bound = functools.reduce(jnp.minimum, along) + jnp.square(g)
        scaled = jnp.where(bound > 0, g / jnp.sqrt(jnp.where(bound > 0, bound, 1)), 0)
        velocity = (1 - momentum) * scaled + momentum * velocity
        covers = [bound.max([k for k in range(x.ndim) if k != axis]) for axis in range(len(covers))]
        return x - rate(i) * velocity, velocity, covers

    return init, update, _first


def _with_zeros(x0):
    return x0, jnp.zeros_like(x0)


def _with_two_zeros(x0):
    return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)


def _first(state):
    return state[0]


# -- gradients -------------------------------------------------------------------------------------


def l2_norm(tree: Any) -> Array:
    """The Euclidean norm of all elements of a pytree of arrays.

    Example:
        >>> float(l2_norm({"a": jnp.array([3.0]), "b": 4.0}))
        5.0
    """
    return jnp.sqrt(sum([jnp.vdot(x, x) for x in _leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: float | Array) -> Any:
    """Gradients scaled down so that their common norm is at most `max_norm`.

    Example:
        >>> float(l2_norm(clip_grads([jnp.array([3.0, 4.0])], 1.0)))
        1.0
    """
    norm = l2_norm(grad_tree)
    return _tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


# -- states as pytrees -----------------------------------------------------------------------------


class JoinPoint:
    """The state of one parameter, in an optimizer's state written as a pytree.

    Example:
        >>> from gradix.example_libraries import optimizers
        >>> state = optimizers.momentum(0.1, mass=0.9).init_fn({"w": 1.0})
        >>> points = optimizers.unpack_optimizer_state(state)
        >>> type(points["w"]).__name__, points["w"].subtree
        ('JoinPoint', (1.0, Array(0., dtype=float32, weak_type=True)))
    """

    def __init__(self, subtree):
        self.subtree = subtree

    def __iter__(self):
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """An optimizer's state as a pytree like the parameters, whose leaves are `JoinPoint`s.

    Each `JoinPoint` has the state of a parameter. The result can be stored.

    Example:
        >>> state = sgd(0.1).init_fn({"x": 1.0})
        >>> unpack_optimizer_state(state)["x"].subtree
        1.0
    """
    states = [_unflatten(t, s) for t, s in zip(opt_state.subtree_defs, opt_state.packed_state)]
    return _unflatten(opt_state.tree_def, [JoinPoint(s) for s in states])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The optimizer's state that `unpack_optimizer_state` made a pytree of.

    Example:
        >>> state = sgd(0.1).init_fn({"x": 1.0})
        >>> pack_optimizer_state(unpack_optimizer_state(state)).packed_state
        [[1.0]]
    """
    points, tree = _flatten(marked_pytree)
    pairs = [_flatten(point.subtree) for point in points]
    return OptimizerState([states for states, _ in pairs], tree, tuple([t for _, t in pairs]))


__dir__ = _own_names(
    __name__,
    "InitFn",
    "ParamsFn",
    "Schedule",
    "UpdateFn",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "make_schedule",
    "piecewise_constant",
    "polynomial_decay",
)
