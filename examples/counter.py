"""State in a world of pure functions: why a counter that changes itself stops counting under `jit`, and the cure.

python examples/counter.py
"""

from typing import NamedTuple

import gradix
import gradix.numpy as jnp


class SelfChangingCounter:
    """An ordinary Python object: `count` changes the object it belongs to."""

    def __init__(self):
        self.n = 0

    def count(self):
        """Add one and return the result."""
        self.n += 1
        return self.n


class CounterState(NamedTuple):
    """Everything the counter remembers."""

    n: gradix.Array


def reset():
    """The state to begin with."""
    return CounterState(jnp.zeros((), int))


def count(state):
    """Return the next value and the next state; the state given stays as it was."""
    n = state.n + 1
    return n, CounterState(n)


def main():
    """Count to three in four ways, and say what each shows."""
    print("1. A counter that changes itself, called as ordinary Python:")
    counter = SelfChangingCounter()
    print("  ", [counter.count() for _ in range(3)])

    print(
        "2. The same method under jit, which runs the Python code once and then replays what it recorded:"
    )
    counter = SelfChangingCounter()
    fast_count = gradix.jit(counter.count)
    print("  ", [int(fast_count()) for _ in range(3)], "- the 1 was recorded as a constant")

    print("3. State goes in as an argument and comes out as a result, so jit sees it change:")
    fast_count, state = gradix.jit(count), reset()
    values = []
    for _ in range(3):
        value, state = fast_count(state)
        values.append(int(value))
    print("  ", values)
    print("   the recorded program:", str(gradix.make_jaxpr(count)(reset())).replace("\n", "\n   "))

    print(
        "4. State as an argument also maps: five counters with different beginnings take one step together:"
    )
    state = CounterState(10 * jnp.arange(5))
    value, state = gradix.vmap(count)(state)
    print("  ", value)

    print("\nTry next, in this file:")
    print("   - give CounterState a second field `step` and count in steps of it")
    print(
        "   - replace the loop of part 3 by gradix.lax.scan(lambda s, _: count(s)[::-1], reset(), length=3)"
    )
    print("   - the same pattern carries the parameters of a model: see examples/regression.py")


if __name__ == "__main__":
    main()
