"""Types that must say the same division: carries, branches, mapped axes, moved sums; and what is refused."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax
from gradix.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard


@pytest.fixture(autouse=True)
def mesh():
    made = gradix.make_mesh((4, 2), ("x", "y"))
    with gradix.set_mesh(made):
        yield made


def divided(*spec, shape=(8, 4)):
    return gradix.device_put(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), P(*spec))


LOOPS = {
    "scan": lambda x: lax.scan(lambda c, _: (reshard(c, P()), None), x, None, length=2)[0],
    "while_loop": lambda x: lax.while_loop(lambda c: c.sum() < 3, lambda c: reshard(c, P()), x),
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, c: reshard(c, P()), x),
    "cond": lambda x: lax.cond(x.sum() > 1, lambda c: reshard(c, P()), lambda c: c, x),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_carries_and_branches_keep_their_division(name, jitted):
    f = gradix.jit(LOOPS[name]) if jitted else LOOPS[name]
    with pytest.raises(TypeError, match="equal"):
        f(divided("x"))
    assert f(divided()).shape == (8, 4)


@pytest.mark.parametrize("loop", [lambda x: lax.scan(lambda c, r: (c, r), 0, x), lambda x: lax.map(jnp.sin, x)])
def test_rows_of_a_divided_axis_are_refused(loop):
    with pytest.raises(ValueError, match="0th dimension of all xs should be replicated") as e:
        gradix.jit(loop)(divided("x", "y"))
    assert "reshard(xs, P(None, 'y'))" in str(e.value)
    gradix.jit(loop)(divided(None, "y"))


@pytest.mark.parametrize("other", [lambda: divided(), lambda: divided("y"), lambda: np.ones((8, 4), np.float32)])
def test_mapped_axes_are_divided_in_the_same_way(other):
    f = gradix.jit(gradix.vmap(lambda a, b: (a, b)))
    with pytest.raises(ValueError, match="divided differently"):
        f(divided("x"), other())
    assert [r.sharding.spec for r in f(divided("x"), divided("x", "y"))] == [P("x", None), P("x", "y")]


MOVES = {
    "reshape": lambda x, s: jnp.reshape(x, (4, 2), out_sharding=s),
    "ravel": lambda x, s: jnp.ravel(x, out_sharding=s),
    "lax.reshape": lambda x, s: lax.reshape(x, (4, 2), out_sharding=s),
    "broadcast_to": lambda x, s: jnp.broadcast_to(x, (3, 8), out_sharding=s),
}


@pytest.mark.parametrize("kind", ["unreduced", "reduced"])
@pytest.mark.parametrize("name", MOVES)
def test_moved_elements_are_summed_over_the_same_axes(name, kind):
    spec = P(**{kind: {"x"}})
    with pytest.raises(ValueError, match=f"cannot contain {kind}"):
        MOVES[name](np.arange(8.0), spec)
    held = reshard(jnp.arange(8.0), spec)
    with pytest.raises(ValueError, match=f"must be {kind} over the same mesh axes as operand"):
        MOVES[name](held, P("y" if name != "broadcast_to" else None))
    got = MOVES[name](held, spec)
    assert getattr(got.sharding.spec, kind) == {"x"}
    np.testing.assert_array_equal(reshard(got, P()), MOVES[name](jnp.arange(8.0), None))


def test_pieces_of_a_summand_are_summands():
    held = reshard(jnp.arange(8.0), P(unreduced={"x"}))
    pieces = gradix.jit(lambda x: lax.split(x, (3, 5)))(held)
    assert [p.sharding.spec.unreduced for p in pieces] == [{"x"}, {"x"}]
    np.testing.assert_array_equal(reshard(pieces[1], P()), np.arange(3.0, 8.0))

    def total(x):
        a, b = lax.split(x, (4, 4))
        return reshard(a * 2.0 + b, P()).sum()

    got = gradix.jit(gradix.grad(total))(held)
    assert got.sharding.spec.reduced == {"x"}
    np.testing.assert_array_equal(got, [2.0] * 4 + [1.0] * 4)


def test_open_entries_need_an_axis_that_the_compiler_decides_about(mesh):
    with pytest.raises(ValueError, match="cannot contain `P.UNCONSTRAINED`"):
        NamedSharding(mesh, P(P.UNCONSTRAINED))
    half = gradix.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    assert NamedSharding(half, P(P.UNCONSTRAINED)).spec == P(P.UNCONSTRAINED)


def test_a_constraint_that_the_type_fulfils_is_no_operation():
    f = gradix.jit(lambda x: lax.with_sharding_constraint(x, P("x")))
    assert not f.trace(divided("x")).jaxpr.eqns
    with pytest.raises(AssertionError, match="acts as an assert"):
        f(divided())
