"""Random numbers of kernels for TPUs: a generator that all programs of a kernel share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradix import lax, numpy as jnp, random
from gradix._core.array import as_array
from gradix._core.trace import outside
from gradix.experimental.pallas._programs import outermost, shared_ref

_STATE = "random"


def _state(what: str) -> Any:
    """The reference to the data of the kernel's key; a generator that was not seeded begins with 0."""
    running = outermost(what)
    found = running.shared.get(_STATE)
    if found is None:
        with outside():
            first = as_array(np.zeros(2, np.uint32))
            found = running.shared[_STATE] = shared_ref(running, first)
    return found


def prng_seed(*seeds: Any) -> None:
    """Begin the random numbers of a kernel anew.

    The numbers are those of `random.key`, not those of the generator of any TPU.

    Args:
        *seeds: integers, which may be traced; what follows depends on all of them.

    Raises:
        ValueError: no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(o):
        ...     pltpu.prng_seed(3, pl.program_id(0))
        ...     o[pl.program_id(0)] = pltpu.stateful_uniform() < 1
        >>> pl.pallas_call(kernel, gradix.ShapeDtypeStruct((2,), "bool"), grid=2)()
        Array([ True,  True], dtype=bool)
    """
    state = _state("pltpu.prng_seed")
    key = random.wrap_key_data(np.zeros(2, np.uint32), impl="threefry2x32")
    for seed in seeds:
        key = random.fold_in(key, jnp.asarray(seed).astype(np.uint32))
    state.write(random.key_data(key))


def _next_key(what: str) -> Any:
    state = _state(what)
    old = random.wrap_key_data(state.read(), impl="threefry2x32")
    new, own = random.split(old)
    state.write(random.key_data(new))
    return own


def prng_random_bits(shape: Any) -> Any:
    """Random bits as int32.

    Args:
        shape: the shape of the result.

    Raises:
        ValueError: no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(o):
        ...     pltpu.prng_seed(0)
        ...     o[...] = pltpu.prng_random_bits((2,))
        >>> first, again = [pl.pallas_call(kernel, gradix.ShapeDtypeStruct((2,), "int32"))() for _ in range(2)]
        >>> first.dtype, bool((first == again).all()), bool(first[0] != first[1])
        (dtype('int32'), True, True)
    """
    bits = random.bits(_next_key("pltpu.prng_random_bits"), tuple(shape), np.uint32)
    return lax.bitcast_convert_type(bits, np.int32)


def _stateful(name: str, sampler: Callable[..., Any], arguments: str, shown: str) -> Callable[..., Any]:
    def sample(*args: Any, **kwargs: Any) -> Any:
        return sampler(_next_key(f"pltpu.stateful_{name}"), *args, **kwargs)

    sample.__name__ = sample.__qualname__ = f"stateful_{name}"
    sample.__doc__ = f"""`random.{name}` with keys of the kernel's own, which `prng_seed` begins.

    Args:
        *args, **kwargs: the arguments of `random.{name}` after the key.

    Raises:
        ValueError: no kernel is running.

    Example:
        >>> import gradix
        >>> from gradix.experimental import pallas as pl
        >>> from gradix.experimental.pallas import tpu as pltpu
        >>> def kernel(o):
        ...     pltpu.prng_seed(0)
        ...     o[...] = pltpu.stateful_{name}({arguments}).astype("float32")
        >>> x = pl.pallas_call(kernel, gradix.ShapeDtypeStruct((8,), "float32"))()
        >>> {shown}
        True
    """
    return sample


stateful_bits = _stateful("bits", random.bits, "(8,)", "bool(x.max() > 2**16)")
stateful_uniform = _stateful("uniform", random.uniform, "(8,), minval=2.0, maxval=3.0", "bool((x // 1 == 2).all())")
stateful_normal = _stateful("normal", random.normal, "(8,)", "bool((x < 0).any() and (x > 0).any())")
stateful_bernoulli = _stateful("bernoulli", random.bernoulli, "0.5, (8,)", "set(x.tolist()) == {0.0, 1.0}")
