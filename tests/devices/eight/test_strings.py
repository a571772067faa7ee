"""Arrays of strings: devices hold them whole or divided, and give them back; nothing computes with them."""

import pickle

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

from .common import mesh, on

STRING = getattr(np.dtypes, "StringDType", lambda: pytest.skip("NumPy has no strings of variable length"))()
WORDS = np.array([["ab", "cd", ""], ["ef", "long " * 20, "ü"]], dtype=STRING)


def places():
    return gradix.devices()[3], on(mesh((2, 3)), "x", "y"), on(mesh((2, 3)), None, "y"), on(mesh((2, 3)))


@pytest.mark.parametrize(
    "put", [gradix.device_put, lambda x, p: jnp.asarray(x, device=p), lambda x, p: jnp.array(x, device=p)]
)
def test_devices_hold_strings(put):
    for place in places():
        x = put(WORDS, place)
        x.block_until_ready()
        assert x.dtype == STRING and x.shape == (2, 3) and x.committed
        assert gradix.device_get(x).dtype == STRING and np.array_equal(x, WORDS) and x.tolist() == WORDS.tolist()
        for shard in x.addressable_shards:
            assert np.array_equal(shard.data, WORDS[shard.index]) and shard.data.dtype == STRING
        for other in places():
            assert np.array_equal(gradix.device_put(x, other), WORDS)
        assert np.array_equal(pickle.loads(pickle.dumps(x)), WORDS)
    assert jnp.asarray(WORDS, dtype=STRING, device=places()[0]).dtype == STRING


def test_strings_are_no_numbers():
    first = gradix.devices()[0]
    for call, match in (
        (lambda: jnp.asarray(WORDS), "Pass device=, as"),
        (lambda: jnp.array(WORDS), "Pass device=, as"),
        (
            lambda: jnp.asarray(WORDS, jnp.bfloat16, device=first),
            r"dtype bfloat16 from an object with dtype StringDType\(\)",
        ),
        (lambda: jnp.array(WORDS, "int32", device=first), r"dtype int32 from an object with dtype StringDType\(\)"),
        (
            lambda: jnp.asarray(np.arange(2), STRING, device=first),
            r"dtype StringDType\(\) from an object with dtype int64",
        ),
        (
            lambda: jnp.asarray(jnp.arange(2), STRING, device=first),
            r"dtype StringDType\(\) from an object with dtype int32",
        ),
        (lambda: jnp.asarray([1], STRING, device=first), r"dtype StringDType\(\) from an object with dtype list"),
        (lambda: jnp.negative(gradix.device_put(WORDS, first)), "neg does not accept dtype"),
        (lambda: gradix.jit(lambda x: x)(gradix.device_put(WORDS, first)), "has no XLA type"),
    ):
        with pytest.raises(TypeError, match=match):
            call()
