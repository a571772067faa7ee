"""Names and answers that libraries further out ask for, and how they recognise arrays; in a process of their own."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import gradix
    gradix.install_as_jax()
    import importlib, pickle
    import jax, jax.numpy as jnp, numpy as np
    from jax.interpreters import batching

    for module, name in [("numpy.util", "promote_dtypes_complex"), ("nn.initializers", "_complex_truncated_normal"),
                         ("nn.initializers", "_complex_uniform"), ("interpreters.batching", "is_vmappable"),
                         ("typing", "SupportsDType"), ("typing", "Shape"), ("typing", "DType"),
                         ("scipy.special", "gammaln"), ("numpy.ufuncs", "ufunc"), ("pjit", "auto_axes"), ("public_test_util", "check_close"),
                         ("random", "random_gamma_p"), ("lib.mlir", "ir"), ("lib.mlir.dialects", "hlo")]:
        assert getattr(importlib.import_module("jax._src." + module), name), (module, name)
    from jax._src.lib import mlir
    from jax.experimental.ode import api_util, ravel_first_arg
    assert isinstance(jnp.add, importlib.import_module("jax._src.numpy.ufuncs").ufunc) and api_util is jax.api_util
    from jax._src.typing import Array

    # drjax makes types of results from those of operands, with all that these say; cuthbert annotates with Array.
    assert Array is jax.Array and isinstance(jnp.ones(2), Array)
    operand = jax.typeof(jnp.ones(2))
    assert operand.memory_space is jax.memory.Space.Device
    assert jax.core.ShapedArray((3, 2), operand.dtype, memory_space=operand.memory_space).shape == (3, 2)
    from jax._src.numpy.util import promote_dtypes_complex
    from jax._src.public_test_util import check_close

    assert [x.dtype for x in promote_dtypes_complex(1, jnp.ones(2))] == [np.complex64] * 2
    check_close({"a": jnp.ones(2)}, {"a": np.ones(2, "f4")})
    try:
        check_close(jnp.ones(2), np.zeros(2, "f4"))
    except AssertionError:
        pass
    else:
        raise SystemExit("check_close accepted another value")

    # Libraries look at where the class of a value is from.
    def seen(x):
        assert type(x).__module__.split(".")[0] == "jax", type(x).__module__
        return x
    x = jnp.ones(2)
    seen(x), jax.jit(seen)(x), jax.vmap(seen)(x), jax.grad(lambda x: seen(x).sum())(x)
    assert pickle.loads(pickle.dumps(x)).tolist() == [1.0, 1.0]
    kinds = [jax.dtypes.prng_key, jax.dtypes.extended]
    assert [k.__module__ for k in kinds] == ["jax.dtypes"] * 2 and repr(kinds[0]) == "<class 'jax.dtypes.prng_key'>"
    assert pickle.loads(pickle.dumps(kinds)) == kinds
    keys = jax.random.split(jax.random.key(0), 3)
    assert keys._base_array.shape == (3, 2) and keys._impl.key_shape == (2,) and not hasattr(x, "_base_array")
    assert jax.config._read("jax_enable_x64") is False
    jax.config.update(name="jax_enable_x64", val=False)

    # A container that is mapped by numbers leaves other programs as they are.
    class Box:
        def __init__(self, x):
            self.x = x
    batching.register_vmappable(Box, int, int, lambda cont, get, box, spec: Box(cont(box.x, spec)),
                                lambda cont, n, box, spec: Box(cont(n, box.x, spec)), None)
    assert jax.vmap(lambda x: x + 1)(x).tolist() == [2.0, 2.0]
    assert jax.vmap(lambda x: x + 1, in_axes=1, out_axes=1)(jnp.ones((3, 2))).shape == (3, 2)
    assert jax.vmap(lambda b: Box(b.x * 2))(Box(x)).x.tolist() == [2.0, 2.0]
    assert jax.vmap(lambda x: Box(x * 2))(x).x.tolist() == [2.0, 2.0]
    batching.unregister_vmappable(Box)

    from gradix import compat
    compat.uninstall()
    assert type(x).__module__.startswith("gradix") and not hasattr(keys, "_impl")
    assert [k.__module__ for k in kinds] == ["gradix.dtypes"] * 2
    print("fine")
"""


@pytest.mark.x32
def test_in_a_new_process():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=300)
    assert done.stdout == "fine\n", done.stdout + done.stderr
