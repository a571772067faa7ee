"""Names of `jax._src` that libraries import: what is mapped, and what says that it is not."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import compat
from gradix._base import source
from gradix.compat import check
from gradix.compat.internals import AREAS


@pytest.fixture
def as_jax():
    names = [n for n in sys.modules if n.partition(".")[0] == "jax"]
    peer = {name: sys.modules.pop(name) for name in names}
    gradix.install_as_jax()
    yield
    compat.uninstall()
    sys.modules.update(peer)


def test_each_area_with_code_is_a_module_of_the_folder_and_each_public_place_is_there():
    folder = Path(importlib.import_module("gradix.compat.internals").__file__).parent
    files = [p.relative_to(folder).with_suffix("") for p in folder.rglob("*.py") if p.stem != "__init__"]
    assert {".".join(f.parts) for f in files} == {a for a, row in AREAS.items() if row.code}
    for row in AREAS.values():
        for module in row.names_from.split():
            importlib.import_module(module.removesuffix(".jit"))
        for name in row.names.values():
            module, _, attribute = name.partition(":")
            assert hasattr(importlib.import_module(module), attribute), name


def test_names_are_public_parts(as_jax):
    import jax
    from jax._src.ad_util import stop_gradient_p
    from jax._src.dispatch import wait_for_tokens
    from jax._src.dtypes import TypePromotionError

    assert stop_gradient_p is gradix.lax.stop_gradient_p and wait_for_tokens is jax.effects_barrier
    with pytest.raises(TypePromotionError), jax.numpy_dtype_promotion("strict"):
        jnp.ones(2, "int32") + jnp.ones(2, "float32")


def test_what_nobody_mapped_is_named(as_jax):
    with pytest.raises(ModuleNotFoundError, match=r"'jax._src.no_such'.*internal to JAX.*jax.extend"):
        importlib.import_module("jax._src.no_such")
    with pytest.raises(ImportError, match="no_such"):
        exec("from jax._src.dispatch import no_such")
    dispatch = importlib.import_module("jax._src.dispatch")
    with pytest.raises(
        AttributeError, match="no_such.*used by equinox, chex for running operations.*jax.effects_barrier"
    ):
        dispatch.no_such  # noqa: B018
    with pytest.raises(
        ModuleNotFoundError, match="cudnn.*used by keras for attention by cuDNN.*jax.nn.dot_product_attention"
    ):
        importlib.import_module("jax._src.cudnn.fused_attention_stablehlo")


def test_each_public_way_is_there():
    for row in AREAS.values():
        for name in (
            n.strip()
            for n in row.instead.replace(" and ", ", ").split(",")
            if n.strip().startswith("jax.") and "(" not in n
        ):
            why = check.why_missing(name.split()[0])
            assert why is None, (name, why)


def test_frames_of_an_excluded_file_are_left_out(tmp_path):
    library, program = tmp_path / "library.py", tmp_path / "program.py"
    library.write_text(
        "import jax._src.traceback_util as t\nt.register_exclusion(__file__)\ndef call(f):\n    return f()\n"
    )
    program.write_text("import library\ndef fails():\n    raise ValueError('told')\nlibrary.call(fails)\n")
    done = subprocess.run(
        [sys.executable, "-m", "gradix", str(program)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": f"{tmp_path}:{Path(gradix.__file__).parents[1]}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 1 and "ValueError: told" in done.stderr
    assert "library.py" not in done.stderr and "in fails" in done.stderr


def test_what_compiles_can_be_wrapped(as_jax, monkeypatch):
    from jax._src import compiler

    platforms = []
    inner = compiler.backend_compile_and_load

    def wrapper(backend, *args, **kwargs):
        platforms.append(backend.platform)
        return inner(backend, *args, **kwargs)

    monkeypatch.setattr(compiler, "backend_compile_and_load", wrapper)
    f = gradix.jit(lambda x: jnp.sin(x) * 3.0625 + 0.4375)
    f(jnp.ones(7))
    f(jnp.ones(7))
    assert platforms == ["cpu"]


def test_nodes_are_registered(as_jax):
    from jax._src.tree_util import _registry, flatten_one_level

    assert tuple in _registry and dict in _registry and int not in _registry
    assert flatten_one_level([1, (2,)])[0] == [1, (2,)]
    with pytest.raises(TypeError, match="cannot be listed"):
        list(_registry)


def test_what_belongs_elsewhere_is_imported_and_refused(as_jax):
    from jax.experimental import fused
    from jax.experimental.colocated_python import func

    with pytest.raises(NotImplementedError, match="jax.experimental.fused.fused.*not part of gradix"):
        fused.fused(lambda x: x)
    with pytest.raises(NotImplementedError, match="remote devices"):
        func.anything()
    with pytest.raises(NotImplementedError, match="one kernel"):

        class Kernel(fused.Kernel):
            pass


def test_a_class_becomes_array_like(as_jax):
    import jax

    class Boxed:
        def __init__(self, x):
            self.x = np.asarray(x)

        def __array__(self, dtype=None, copy=None):
            return self.x

    with pytest.raises(TypeError, match="Boxed"):
        jnp.sin(Boxed(0.5))
    jax.core.pytype_aval_mappings[Boxed] = jax.core.pytype_aval_mappings[np.ndarray]
    jax.interpreters.xla.canonicalize_dtype_handlers[Boxed] = jax.interpreters.xla.canonicalize_dtype_handlers[
        np.ndarray
    ]
    assert jnp.sin(Boxed(0.0)) == 0 and jax.typeof(Boxed([1.0])).shape == (1,)
    assert jax.jit(lambda: jnp.sum(jnp.add(Boxed([1.0, 2.0]), 1)))() == 5
    with pytest.raises(KeyError):
        jax.core.pytype_aval_mappings[dict]  # noqa: B018


def test_types_of_tangents():
    assert jnp.ones(2).aval.to_tangent_aval() is jnp.ones(2).aval
    assert jnp.ones(2, int).aval.to_tangent_aval().dtype == gradix.float0
    assert not source.is_inside(__file__)


def test_modules_of_jaxlib_and_their_version(as_jax):
    import jax
    import jax.lib
    import jaxlib
    from jax._src.lib import jax_mlir_ext, version_str, xla_client

    assert isinstance(jax.devices()[0], xla_client.Device) and callable(jax_mlir_ext.register_dialects)
    assert jax.lib.__version__ == version_str == jaxlib.__version__


def test_arrays_that_bring_their_type(as_jax):
    from jax._src.core import physical_aval
    from jax._src.literals import TypedNdArray

    x = TypedNdArray(np.ones(2, np.float32), gradix.core.ShapedArray((2,), np.dtype("float32"), True))
    assert x.weak_type and x.aval.shape == (2,) and isinstance(x, np.ndarray)
    assert not isinstance(np.ones(2), TypedNdArray) and x[:1].aval.shape == (1,)
    assert physical_aval(gradix.typeof(gradix.random.key(0))).str_short() == "uint32[2]"
    assert physical_aval(gradix.typeof(1.0)).shape == ()


@pytest.mark.x32
def test_a_suite_written_against_jax_own_test_case(as_jax):
    import unittest

    from jax._src import test_util as jtu

    class Case(jtu.JaxTestCase):
        def test_equal(self):
            self.assertAllClose({"a": [jnp.ones(2), 1.0]}, {"a": [np.ones(2, np.float32), 1.0 + 1e-7]})
            self.assertArraysEqual(jnp.arange(3), np.arange(3, dtype=np.int32))
            with self.assertRaises(AssertionError):
                self.assertAllClose(jnp.ones(2), 2 * jnp.ones(2))
            with self.assertRaises(AssertionError):
                self.assertAllClose(jnp.ones(2), jnp.ones(2, int))
                self.assertAllClose(jnp.ones(2), np.ones(2))  # float64 is float32 here
            self.assertEqual(self.rng().randint(1 << 30), self.rng().randint(1 << 30))

    result = unittest.TestResult()
    jtu.JaxTestLoader().loadTestsFromTestCase(Case).run(result)
    assert result.testsRun == 1 and not result.errors and not result.failures
    assert jtu.device_under_test() == "cpu" and jtu.test_device_matches(["cpu", "tpu"])
    assert np.float32 in jtu.dtypes.all_floating and jtu.dtypes.supported([np.float64]) == []
    with jtu.count_jit_and_pmap_lowerings() as count:
        f = gradix.jit(lambda x: x * 3.25 + 1)
        f(1.0), f(2.0)
    assert count() == 1


def test_errors_of_prefixes_are_told_by_the_name_of_the_prefix():
    adapter = importlib.import_module("gradix.compat.internals.tree_util")
    errors = adapter.prefix_errors({"x": [1], "y": 2}, {"x": 3, "y": (4,)})
    assert len(errors) == 1
    with pytest.raises(ValueError, match=r"in_axes\['x'\]"):
        raise errors[0]("in_axes")


def test_numbers_that_bring_their_type(as_jax):
    from jax._src.literals import TypedComplex, TypedFloat, TypedInt

    assert repr(TypedInt(1, np.dtype("int32"))) == "TypedInt(1, dtype=int32)"
    for x in (TypedInt(1, "int32"), TypedFloat(1.5, "float32"), TypedComplex(1j, "complex64")):
        assert x.aval == gradix.typeof(x) and x.aval.weak_type and x + 1 == type(x).__mro__[2](x) + 1


def test_the_default_generator_on_raw_keys(as_jax):
    import jax
    from jax._src.random import threefry2x32

    key = threefry2x32.threefry_seed(jax.numpy.int32(3))
    assert key.tolist() == [0, 3]
    np.testing.assert_array_equal(
        threefry2x32.threefry_split(key, (2,)), jax.random.key_data(jax.random.split(jax.random.key(3)))
    )
    np.testing.assert_array_equal(
        threefry2x32.threefry_random_bits(key, 8, (3,)), jax.random.bits(jax.random.key(3), (3,), "uint8")
    )


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def test_nodes_are_taken_apart_and_put_together(as_jax):
    from jax._src.tree_util import _registry

    gradix.tree_util.register_pytree_node(Pair, lambda p: ((p.a,), p.b), lambda b, children: Pair(*children, b))
    for node, children, data in (
        ((1, 2), [1, 2], None),
        ({"b": 1, "a": 2}, [2, 1], ("a", "b")),
        (Pair(1, "q"), [1], "q"),
        (None, [], None),
    ):
        entry = _registry[type(node)]
        found, rest = entry.to_iter(node)
        assert (list(found), rest) == (children, data)
        joined = entry.from_iter(rest, [10 * c for c in found])
        assert gradix.tree.leaves(joined) == [10 * c for c in children] and type(joined) is type(node)
    with pytest.raises(KeyError):
        _registry[int]


def test_internal_members_of_arrays_and_dimensions_are_there_as_long_as_jax_is(as_jax):
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(x._value, x._npy_value)
    assert [part.shape for part in x._arrays] == [(3,)] and x._fully_replicated_shard().shape == (3,)
    x._check_if_deleted()
    x.delete()
    assert x._arrays is None and x._npy_value is None
    with pytest.raises(RuntimeError, match="deleted"):
        x._check_if_deleted()
    (d,) = gradix.export.symbolic_shape("3*a + 1")
    assert d._get_vars() == {"a"} and d._evaluate({"a": 2}) == 7
    compat.uninstall()
    assert not hasattr(x, "_value") and not hasattr(d, "_get_vars")


def test_internal_members_of_shardings_and_stages(as_jax):
    sharding = gradix.NamedSharding(gradix.make_mesh((1,), ("x",)), gradix.P("x"))
    assert sharding._to_xla_hlo_sharding(1).is_replicated() and jnp.ones(2).sharding._to_xla_hlo_sharding(1)
    lowered = gradix.jit(lambda x: x).lower(1.0)
    assert lowered._no_kwargs is False and lowered.compile()._no_kwargs is False
    key = gradix.random.key(0)
    key.delete()
    assert key._base_array.is_deleted()
    compat.uninstall()
    assert not hasattr(sharding, "_to_xla_hlo_sharding") and not hasattr(lowered, "_no_kwargs")


def test_the_report_on_the_environment_says_which_jax_is_stood_for(as_jax):
    version = sys.modules["jax"].__version__
    assert f"jax:    {version}\n" in gradix.print_environment_info(return_string=True)
    compat.uninstall()
    assert "jax: " not in gradix.print_environment_info(return_string=True)
