"""Effects of primitives that libraries define: of each application its own, and what a program must say of them."""

import pytest

import gradix
import gradix.numpy as jnp
from gradix import core
from gradix.extend.core import Primitive

marks_p = Primitive("marks")
marks_p.multiple_results = True
marks_p.def_effectful_abstract_eval(lambda *types, mark: ([], {mark}))


def marked(*marks):
    def f(x):
        for m in marks:
            marks_p.bind(mark=m)
        return x + 1

    return gradix.make_jaxpr(f)(1.0)


def test_each_application_has_its_own_effects():
    assert marked("a").effects == {"a"} and marked("b").effects == {"b"}
    both = marked("a", "b")
    assert [e.effects for e in both.jaxpr.eqns] == [{"a"}, {"b"}, frozenset()]
    assert both.effects == {"a", "b"}


def test_a_program_must_name_the_effects_of_its_equations():
    jaxpr = marked("a", "b").jaxpr
    core.check_jaxpr(jaxpr)
    with pytest.raises(core.JaxprTypeError, match="not a subset"):
        core.check_jaxpr(jaxpr.replace(effects=frozenset({"a"})))


def test_types_of_the_wrong_number_are_refused():
    one_p, many_p = Primitive("one"), Primitive("many")
    many_p.multiple_results = True
    one_p.def_abstract_eval(lambda x: [x])
    many_p.def_abstract_eval(lambda x: x)
    with pytest.raises(ValueError, match="must return a type"):
        gradix.make_jaxpr(lambda x: one_p.bind(x))(1.0)
    with pytest.raises(ValueError, match="must return a list of types"):
        gradix.make_jaxpr(lambda x: many_p.bind(x))(1.0)


def test_unroll_must_be_known():
    run = lambda n: gradix.lax.scan(lambda c, x: (c, x), 0.0, jnp.ones(3), unroll=n)  # noqa: E731
    with pytest.raises(gradix.errors.ConcretizationTypeError, match="static"):
        gradix.jit(run)(2)
    with gradix.numpy_dtype_promotion("strict"):
        assert run(jnp.array(2))[0] == 0.0


def test_pmap_of_a_method():
    class Scaled:
        factor = 3.0

        def _scale(self, x):
            return x * self.factor

        scale = gradix.pmap(_scale, static_broadcasted_argnums=0)

    assert Scaled().scale(jnp.ones(1)).tolist() == [3.0]


def test_primitives_bound_with_a_sharding():
    lax = gradix.lax
    narrow = lambda x: lax.convert_element_type_p.bind(
        x, new_dtype=jnp.dtype("float16"), weak_type=False, sharding=None
    )  # noqa: E731
    assert narrow(jnp.ones(2)).dtype == "float16" and gradix.vmap(narrow)(jnp.ones(2)).dtype == "float16"
    assert gradix.grad(lambda x: narrow(x).sum())(jnp.ones(2)).tolist() == [1.0, 1.0]
    assert lax.iota_p.bind(dtype=jnp.dtype("int32"), shape=(3,), dimension=0, sharding=None).tolist() == [0, 1, 2]
    assert gradix.vmap(lambda x: lax.reshape_p.bind(x, new_sizes=(4,), dimensions=None, sharding=None))(
        jnp.ones((3, 2, 2))
    ).shape == (3, 4)


def test_old_configurations_of_foreign_calls_need_an_old_version():
    result = gradix.ShapeDtypeStruct((), "float32")
    with pytest.raises(ValueError, match="below 4"):
        gradix.ffi.ffi_call("f", result, legacy_backend_config="x")


def test_entries_of_a_spec_are_names():
    for entry in ({"x"}, {"x": 1}, ("x", {"y"})):
        with pytest.raises(TypeError, match="name of a mesh axis"):
            gradix.P(entry)
