"""`buffer_callback`: Python functions that write their results into memory given to them."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback

F = np.float32
THREE = gradix.ShapeDtypeStruct((3,), F)


def double(ctx, out, x):
    assert ctx.stage is ExecutionStage.EXECUTE and isinstance(out, Buffer)
    np.asarray(out)[...] = np.asarray(x) * 2


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
@pytest.mark.parametrize("has_side_effect", [False, True])
def test_results_are_what_was_written(transform, has_side_effect):
    f = transform(buffer_callback(double, THREE, has_side_effect=has_side_effect))
    assert np.array_equal(f(jnp.arange(3, dtype=F)), [0, 2, 4])


def test_trees_keywords_and_what_buffers_show():
    seen = []

    def callback(ctx, out, x, *, y):
        seen.append((x["a"].writeable, out["s"].writeable, x["a"].shape, y.dtype, out["s"].ndim))
        np.asarray(out["s"])[...] = np.asarray(x["a"]) + np.asarray(y)
        np.asarray(out["d"])[...] = np.from_dlpack(out["s"]) - 2 * np.asarray(y)
        with pytest.raises(ValueError):
            np.asarray(x["a"])[0] = 1
        with pytest.raises(gradix.errors.JaxRuntimeError, match="stream"):
            ctx.stream

    f = gradix.jit(buffer_callback(callback, {"s": THREE, "d": THREE}))
    out = f({"a": jnp.ones(3, F)}, y=jnp.arange(3, dtype=F))
    assert np.array_equal(out["s"], [1, 2, 3]) and np.array_equal(out["d"], [1, 0, -1])
    assert seen == [(False, True, (3,), F, 1)]


def test_aliases_start_results_with_arguments():
    def callback(ctx, out, x, y):
        np.asarray(out)[1] = 7

    f = buffer_callback(callback, THREE, input_output_aliases={1: 0})
    x = jnp.arange(3, dtype=F)
    assert np.array_equal(f(x * 0, x), [0, 7, 2]) and np.array_equal(x, [0, 1, 2])
    with pytest.raises(Exception, match="joins argument 0 of float32"):
        buffer_callback(callback, THREE, input_output_aliases={0: 0})(jnp.ones(2, F), x)
    with pytest.raises(Exception, match="2 arguments and 1 results"):
        buffer_callback(callback, THREE, input_output_aliases={5: 0})(x, x)


@pytest.mark.parametrize("method, calls", [("sequential", 4), ("broadcast_all", 1), ("expand_dims", 1)])
def test_examples(method, calls):
    counted = []

    def callback(ctx, out, x, y):
        counted.append(out.shape)
        np.asarray(out)[...] = np.asarray(x) * np.asarray(y)

    f = buffer_callback(callback, THREE, vmap_method=method)
    x = jnp.arange(12, dtype=F).reshape(4, 3)
    assert np.array_equal(gradix.jit(gradix.vmap(f, (0, None)))(x, jnp.full(3, 2, F)), x * 2)
    assert len(counted) == calls and counted[0] == ((3,) if calls == 4 else (4, 3))


def test_wrong_callbacks():
    with pytest.raises(TypeError, match="expects a function"):
        buffer_callback(3, THREE)
    with pytest.raises(Exception, match="must write to its buffers and return None"):
        buffer_callback(lambda ctx, out, x: x, THREE)(jnp.ones(3))


@pytest.mark.parametrize("transform", [lambda f: f, gradix.jit])
def test_an_aliased_argument_lies_in_the_memory_of_the_result(transform):
    shared = []

    def double(ctx, out, x, y):
        shared.append([np.shares_memory(out, v) for v in (x, y)])
        np.asarray(out)[...] *= np.asarray(y)

    x, y = jnp.arange(3.0), jnp.full(3, 2.0)
    call = transform(buffer_callback(double, gradix.ShapeDtypeStruct.like(x), input_output_aliases={0: 0}))
    assert call(x, y).tolist() == [0, 2, 4] and x.tolist() == [0, 1, 2]
    assert shared == [[True, False]]
