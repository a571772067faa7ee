"""State in pure functions: why a counter that changes itself stops counting under `jit`, and what to write instead.

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
    """All that the counter remembers."""

    n: gradix.Array


def reset():
    """The state at the start."""
    return CounterState(jnp.zeros((), int))


def count(state):
    """Return the next value and the next state; the given state is not changed."""
    n = state.n + 1
    return n, CounterState(n)


def main():
    """Count to three in four ways, and say what each shows."""
    print("1. A counter that changes itself, called as ordinary Python:")
    counter = SelfChangingCounter()
    print("  ", [counter.count() for _ in range(3)])

    print("2. The same method under jit, which runs the Python code once and then repeats the recorded program:")
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

    print("4. vmap maps over such a state: five counters that start at different numbers take a step together:")
    state = CounterState(10 * jnp.arange(5))
    value, state = gradix.vmap(count)(state)
    print("  ", value)

    print("\nTry next, in this file:")
    print("   - give CounterState a second field `step` and count in steps of it")
    print("   - replace the loop of part 3 by gradix.lax.scan(lambda s, _: count(s)[::-1], reset(), length=3)")
    print("   - examples/regression.py passes the parameters of a model in and out in the same way")


if __name__ == "__main__":
    main()
