"""chex: a dataclass as state, assertions on shapes and on traces, and a value check in compiled code."""

import chex
import jax
import jax.numpy as jnp

PACKAGES = ("chex", "toolz", "absl-py", "typing_extensions")


@chex.dataclass(frozen=True)
class State:
    x: chex.Array
    count: chex.Array


@chex.assert_max_traces(1)
def advance(state: State) -> State:
    chex.assert_shape(state.x, (4, None))
    chex.assert_type([state.x, state.count], [jnp.float32, jnp.int32])
    chex.assert_tree_all_finite(state.x) if not isinstance(state.x, jax.core.Tracer) else None
    return state.replace(x=state.x * 0.9 + jnp.cos(state.x), count=state.count + 1)


def setup():
    chex.clear_trace_counter()
    checked = chex.chexify(jax.jit(lambda s: (chex.assert_tree_all_finite(s.x), advance(s))[1]), async_check=False)

    def step(state):
        state = checked(state)
        return state, state.x.sum()

    return step, State(x=jnp.linspace(0, 1, 12).reshape(4, 3), count=jnp.int32(0))
