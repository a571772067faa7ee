"""What Python functions called from programs may return."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp

ONE = gradix.ShapeDtypeStruct((), jnp.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("given, declared", [([1, 2], (ONE, ONE)), ((1, 2), [ONE, ONE]), ({"a": [1]}, {"a": (ONE,)})])
def test_lists_for_tuples(given, declared, wrap):
    values = gradix.tree.map(np.float32, given)
    got = wrap(lambda: gradix.pure_callback(lambda: values, declared))()
    assert gradix.tree.structure(got) == gradix.tree.structure(declared)
    assert gradix.tree.leaves(got) == gradix.tree.leaves(given)


@pytest.mark.parametrize("wrap", [lambda f: f, gradix.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("value", [np.int32(1), np.float16(1), np.bool_(True)])
def test_other_dtypes_than_declared(value, wrap):
    with pytest.raises(Exception, match=f"dtype {value.dtype} where its result_shape_dtypes say float32"):
        gradix.block_until_ready(wrap(lambda: gradix.pure_callback(lambda: value, ONE))())


@pytest.mark.x32
def test_doubles_are_rounded():
    assert gradix.pure_callback(lambda: np.float64(0.5), ONE) == 0.5


def test_other_structures():
    with pytest.raises(TypeError, match="returned the structure"):
        gradix.pure_callback(lambda: (np.float32(1),), (ONE, ONE))


@pytest.mark.parametrize("function, declared", [(lambda x: (x, x), ()), (lambda x: x, (1,))])
@pytest.mark.parametrize("transform", [gradix.jit, lambda f: f])
def test_a_result_that_was_not_declared_is_an_error_of_the_value_and_of_the_run(function, declared, transform):
    call = lambda x: gradix.pure_callback(function, gradix.ShapeDtypeStruct(declared, np.float32), x)  # noqa: E731
    for kind in (ValueError, TypeError, RuntimeError, gradix.errors.JaxRuntimeError):
        with pytest.raises(kind, match="result_shape_dtypes"):
            gradix.block_until_ready(transform(call)(jnp.float32(1)))


def test_callbacks_have_no_transpose():
    with pytest.raises(ValueError, match="pure_callback cannot be transposed"):
        gradix.linear_transpose(lambda x: gradix.pure_callback(lambda v: v, x, x), 1.0)(1.0)


def test_exceptions_of_callbacks_are_logged_where_gradix_stands_for_jax(caplog, monkeypatch):
    from gradix._api import callbacks

    monkeypatch.setattr(callbacks.told, "as_runtime_errors", True)

    def fails(x):
        raise KeyError("inside")

    with pytest.raises(RuntimeError, match="inside"):
        gradix.block_until_ready(gradix.jit(lambda x: gradix.pure_callback(fails, x, x))(1.0))
    assert "jax.pure_callback failed" in caplog.text and "KeyError" in caplog.text
    # equinox looks for both where it leaves the record out, since it shows the exception itself
    assert [(r.name, r.getMessage()) for r in caplog.records] == [("jax._src.callback", "jax.pure_callback failed")]
