"""Values of a library's mutable types above arrays, under transformations; on JAX where it agrees."""

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gradix
from gradix.experimental import hijax as ours
from gradix.extend.core import Effect as OurEffect


def library(lib, hj, cur_qdd, Effect) -> dict:
    """A library of boxes, which hold a tree of arrays that can be replaced by another tree."""
    typeof, tree = lib.typeof, lib.tree

    class BoxEffect(Effect):
        pass

    effect = BoxEffect()
    hj.control_flow_allowed_effects.add_type(BoxEffect)

    @dataclass(frozen=True)
    class State:
        avals: tuple
        tree: Any

        def to_tangent_qdd(self):
            return State(tuple(a.to_tangent_aval() for a in self.avals), self.tree)

        def normalize(self):
            return State(tuple(a.normalize() for a in self.avals), self.tree)

    class Box:
        def __init__(self, leaves, tree):
            self.leaves, self.tree = list(leaves), tree

        def cur_qdd(self):
            return State(tuple(map(typeof, self.leaves)), self.tree)

        def get(self):
            return get(self)

        def set(self, value):
            put(self, value)

    class BoxType(hj.MutableHiType):
        has_qdd = True

        def __hash__(self):
            return 3

        def __eq__(self, other):
            return type(other) is BoxType

        def str_short(self, short_dtypes=False, **_):
            return "Box"

        __repr__ = str_short

        def lo_ty_qdd(self, state):
            return [lo for a in state.avals for lo in a.lo_ty()]

        def new_from_loval(self, state, *values):
            return Box(values, state.tree)

        def read_loval(self, state, box):
            return tree.leaves(get(box))

        def update_from_loval(self, state, box, *values):
            put(box, tree.unflatten(state.tree, values))

        def to_tangent_aval(self):
            return BoxType()

        get = hj.aval_method(Box.get)
        set = hj.aval_method(Box.set)
        total = hj.aval_property(lambda box: sum(tree.leaves(box.get())))

        def _getitem(self, box, index):
            return box.get()[index]

        def _add(self, box, other):
            return box.get() + other

    hj.register_hitype(Box, lambda b: BoxType())

    class New(hj.HiPrimitive):
        def is_high(self, *leaves, tree):
            return True

        def impl(self, *leaves, tree):
            return Box(leaves, tree)

        to_lojax = impl

        def abstract_eval(self, *leaves, tree):
            return hj.AvalQDD(BoxType(), State(tuple(leaves), tree)), {effect}

        def jvp(self, primals, tangents, *, tree):
            tangents = [hj.instantiate_zeros(t) for t in tangents]
            return new_p.bind(*primals, tree=tree), new_p.bind(*tangents, tree=tree)

    class Get(hj.HiPrimitive):
        multiple_results = True

        def is_high(self, box, *, avals):
            return True

        def impl(self, box, *, avals):
            return list(box.leaves)

        to_lojax = impl

        def abstract_eval(self, box, *, avals):
            return list(avals), {effect}

        def jvp(self, primals, tangents, *, avals):
            out = tuple(a.to_tangent_aval() for a in avals)
            return get_p.bind(*primals, avals=avals), get_p.bind(*tangents, avals=out)

    class Put(hj.HiPrimitive):
        multiple_results = True

        def is_high(self, box, *leaves, tree):
            return True

        def impl(self, box, *leaves, tree):
            box.leaves, box.tree = list(leaves), tree
            return []

        to_lojax = impl

        def abstract_eval(self, box, *leaves, tree):
            box.mutable_qdd.update(State(tuple(leaves), tree))
            return [], {effect}

        def jvp(self, primals, tangents, *, tree):
            put_p.bind(*primals, tree=tree)
            put_p.bind(tangents[0], *[hj.instantiate_zeros(t) for t in tangents[1:]], tree=tree)
            return [], []

    new_p, get_p, put_p = New("new_box"), Get("get_box"), Put("put_box")

    def new(value):
        leaves, treedef = tree.flatten(value)
        return new_p.bind(*leaves, tree=treedef)

    def get(box):
        state = cur_qdd(box)
        return tree.unflatten(state.tree, get_p.bind(box, avals=state.avals))

    def put(box, value):
        leaves, treedef = tree.flatten(value)
        put_p.bind(box, *leaves, tree=treedef)

    return {"new": new, "Box": Box, "cur_qdd": cur_qdd}


def both(step, box):
    """What a step gives twice, and what the box holds after."""
    return step(), step(), box.get()


def programs(lib, names) -> dict:
    """Programs on which both libraries agree, as functions without arguments."""
    new, jnp, lax, jit, grad = names["new"], lib.numpy, lib.lax, lib.jit, lib.grad
    x = jnp.arange(3.0)

    def program(body):
        """`body(box)` for a new box of `x`, which returns a step."""

        def run():
            box = new(x)
            return both(body(box), box)

        return run

    def added(box, a):
        box.set(box.get() + a)
        return box.get() * 2

    def doubled(box):
        box.set(box.get() * 2)

    def named(box, a):
        box.set({**box.get(), f"k{len(box.get())}": a})

    def loss(box, a):
        box.set(box.get() + lax.stop_gradient(a))
        return (a**2 * box.get()).sum()

    def row(box):
        def body(c, y):
            box.set(box.get() + y)
            return c, box.get().sum()

        return body

    def times(box):
        def body(i):
            doubled(box)
            return i + 1

        return body

    def structure(captured):
        box = new({})
        f = jit(lambda a: named(box, a)) if captured else jit(named)
        for a in (1.0, 2.0, 3.0):
            f(a) if captured else f(box, a)
        return box.get()

    def other_dtype():
        box = new(jnp.int32(1))
        jit(lambda b: b.set(b.get() * 1.5))(box)
        return box.get()

    def nested():
        box = new(x)
        inner = jit(doubled)

        @jit
        def outer(b):
            inner(b)
            b.set(b.get() + 1)
            inner(b)

        outer(box)
        return box.get()

    def nested_structure():
        box, inner = new({}), jit(lambda b, y: b.set({"y": y}))

        @jit
        def outer(b):
            inner(b, 1.0)
            b.set({**b.get(), "z": 2.0})

        outer(box)
        return box.get()

    def own(a):
        box = new(a * x)
        box.set(box.get() ** 2)
        return box.get().sum()

    def forward():
        box, tangent = new(x), new(jnp.ones(3))

        def f(b, a):
            b.set(b.get() ** 2 * a)
            return b.get() * 3

        return lib.jvp(f, (box, 2.0), (tangent, 1.0)), box.get(), tangent.get()

    def in_a_tree():
        box = new(x)
        return jit(lambda d: (d["b"].set(d["b"].get() + d["x"]), d["b"].get())[1])({"b": box, "x": x}), box.get()

    def lowered():
        box = new(x)
        return jit(doubled).lower(box).compile()(box), box.get()

    def ruled(box):
        f = lib.custom_vjp(lambda a: (box.get() * a).sum())
        f.defvjp(lambda a: ((box.get() * a).sum(), a), lambda r, ct: (ct * 7,))
        return lambda: grad(f)(2.0)

    return {
        "eager": program(lambda box: lambda: added(box, 1.0)),
        "argument": program(lambda box: (lambda f: lambda: f(box, 1.0))(jit(added))),
        "captured": program(lambda box: (lambda f: lambda: f(1.0))(jit(lambda a: added(box, a)))),
        "other arrays, argument": lambda: structure(False),
        "other arrays, captured": lambda: structure(True),
        "other dtype": other_dtype,
        "made inside": lambda: jit(lambda a: added(new(a), 1.0))(x),
        "nested": nested,
        "nested, other arrays": nested_structure,
        "property": program(lambda box: (lambda f: lambda: f(box))(jit(lambda b: b.total))),
        "operators": program(lambda box: lambda: jit(lambda b: (b + 1.0, b[1]))(box)),
        "in a tree": in_a_tree,
        "lowered": lowered,
        "grad, argument": program(lambda box: lambda: grad(lambda a, b: loss(b, a))(2.0, box)),
        "grad, captured": program(lambda box: lambda: grad(lambda a: loss(box, a))(2.0)),
        "grad of jit": program(lambda box: lambda: grad(jit(lambda a: loss(box, a)))(2.0)),
        "jit of grad": program(lambda box: lambda: jit(grad(lambda a: loss(box, a)))(2.0)),
        "jvp, argument": forward,
        "jvp, made inside": lambda: lib.jvp(own, (2.0,), (1.0,)),
        "scan": program(lambda box: lambda: lax.scan(row(box), 0.0, x)),
        "scan in jit": program(lambda box: (lambda f: lambda: f(box))(jit(lambda b: lax.scan(row(b), 0.0, x)))),
        "scan, made inside": lambda: lax.scan(lambda c, y: (c + added(new(y), 1.0), None), 0.0, x)[0],
        "while": program(lambda box: lambda: lax.while_loop(lambda i: i < 3, times(box), 0)),
        "fori": program(lambda box: lambda: lax.fori_loop(0, 3, lambda i, c: (doubled(box), c)[1], 0)),
        "cond": program(lambda box: lambda: [lax.cond(p, lambda: doubled(box), lambda: None) for p in (True, False)]),
        "cond, operand": program(lambda box: lambda: lax.cond(True, doubled, lambda b: None, box)),
        "cond in jit": program(
            lambda box: (lambda f: lambda: [f(p, box) for p in (True, False)])(
                jit(lambda p, b: lax.cond(p, lambda: doubled(b), lambda: None))
            )
        ),
        "vmap, captured": program(lambda box: lambda: lib.vmap(lambda a: added(box, 1.0) * a)(x)),
        "vmap, argument": program(lambda box: lambda: lib.vmap(lambda a, b: b.get() * a, (0, None))(x, box)),
        "types": program(lambda box: lambda: lib.eval_shape(lambda b: added(b, 1.0), box).shape),
        "custom_vjp": program(ruled),
        "constant": program(lambda box: lambda: jit(lambda a: box.set(a))(x + 5)),
    }


HERE = library(gradix, ours, ours.cur_qdd, OurEffect)
PROGRAMS = programs(gradix, HERE)


@pytest.fixture(scope="module")
def reference():
    jax = pytest.importorskip("jax")
    if not hasattr(pytest.importorskip("jax.experimental"), "cur_qdd"):
        pytest.skip("JAX 0.12 has these types under other names")
    from jax.experimental import cur_qdd, hijax as theirs
    from jax.extend.core import Effect

    return programs(jax, library(jax, theirs, cur_qdd, Effect))


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_the_reference(name, reference):
    have, want = PROGRAMS[name](), reference[name]()
    assert gradix.tree.structure(have) == gradix.tree.structure(want)
    for a, b in zip(gradix.tree.leaves(have), gradix.tree.leaves(want)):
        np.testing.assert_allclose(a, b, rtol=1e-6)


new, x = HERE["new"], gradix.numpy.arange(3, dtype="float32")
lax = gradix.lax


def test_a_jitted_step_is_traced_once_for_each_state():
    box, traces = new(x), []

    @gradix.jit
    def step(b, a):
        traces.append(1)
        b.set(b.get() + a)
        return b.get().sum()

    assert [float(step(box, 1.0)) for _ in range(6)] == [6, 9, 12, 15, 18, 21]
    assert len(traces) == 1
    box.set(gradix.numpy.zeros(2))
    assert float(step(box, 1.0)) == 2
    assert len(traces) == 2


def test_a_captured_value_may_change_its_types_between_calls():
    box, traces = new(x), []

    @gradix.jit
    def total():
        traces.append(1)
        return sum(v.sum() for v in gradix.tree.leaves(box.get()))

    assert [float(total()) for _ in range(3)] == [3, 3, 3]
    box.set({"a": x, "b": x})
    assert [float(total()) for _ in range(3)] == [6, 6, 6]
    assert len(traces) == 2


def test_what_the_reference_cannot():
    def own(a):
        box = new(a * x)
        box.set({"y": box.get() ** 2})
        return box.get()["y"].sum()

    for f in (gradix.grad(own), gradix.grad(gradix.jit(own)), gradix.jit(gradix.grad(own))):
        assert float(f(2.0)) == 20
    np.testing.assert_array_equal(gradix.vmap(gradix.grad(own))(x), 10 * x)

    def twice(y):
        box = new(y)
        box.set(box.get() * 2)
        return box.get()

    np.testing.assert_array_equal(gradix.vmap(twice)(x), 2 * x)

    box = new(x)

    def until(i):
        box.set(box.get() * 2)
        return i + 1

    assert int(lax.while_loop(lambda i: box.get().sum() < 30, until, 0)) == 4
    np.testing.assert_array_equal(box.get(), 16 * x)

    box = new(x)

    @gradix.checkpoint
    def counted(a, b):
        b.set(b.get() + 1)
        return (a**2 * b.get()).sum()

    assert float(counted(2.0, box)) == 24
    assert float(gradix.grad(counted)(2.0, box)) == 36
    np.testing.assert_array_equal(box.get(), x + 2)


def test_errors():
    box = new(x)
    with pytest.raises(ValueError, match="only one reference.*type Box"):
        gradix.jit(lambda a, b: a.set(b.get()))(box, box)
    with pytest.raises(ValueError, match="differentiated value.*type Box"):
        gradix.grad(lambda a: (box.set(a * x), a)[1])(2.0)
    with pytest.raises(ValueError, match="vmapped value.*type Box"):
        gradix.vmap(lambda a: box.set(box.get() + a))(x)
    with pytest.raises(TypeError, match="Box changes in place, and can be neither a result"):
        gradix.jit(lambda a: new(a))(x)
    with pytest.raises(TypeError, match="Box changes in place, and can be neither a result nor the carry"):
        lax.scan(lambda b, _: (b, None), box, None, length=2)
    with pytest.raises(TypeError, match="state of other types inside of a loop, a branch"):
        lax.cond(True, lambda: box.set({}), lambda: None)
    with pytest.raises(NotImplementedError, match="changes in place, and cannot be differentiated"):
        gradix.grad(lambda b: b.get().sum())(box)
    with pytest.raises(NotImplementedError, match="jvp: the function gives a value of type Box a state of other types"):
        gradix.jvp(lambda b: b.set({}), (box,), (new(x),))
    with pytest.raises(TypeError, match="same tree structure"):
        gradix.jvp(lambda b: b.get(), (box,), (x,))
    with pytest.raises(AttributeError, match="other"):
        gradix.jit(lambda b: b.other)(box)
    np.testing.assert_array_equal(box.get(), x)


def test_a_failed_trace_leaves_no_state():
    box = new({})

    @gradix.jit
    def f(b):
        b.set({"a": 1.0})
        raise KeyError("stop")

    for _ in range(2):
        with pytest.raises(KeyError):
            f(box)
    with pytest.raises(KeyError):
        gradix.jit(lambda: f(box))()
    assert box.get() == {}
    gradix.jit(lambda b: b.set({"z": 2.0}))(box)
    assert list(box.get()) == ["z"]


def test_values_are_freed():
    step = gradix.jit(lambda b: b.set(b.get() * 2))
    box = new(x)
    step(box), step(box)
    seen = weakref.ref(box)
    del box
    gc.collect()
    assert seen() is None


@pytest.mark.x32
def test_boxes_look_like_values_of_the_library():
    def f(b):
        assert isinstance(b, HERE["Box"])
        assert repr(b) == "Traced<Box>"
        assert gradix.typeof(b) == gradix.typeof(box)
        assert HERE["cur_qdd"](b) == box.cur_qdd()
        return b.get()

    box = new(x)
    gradix.jit(f)(box)
    assert str(gradix.make_jaxpr(lambda b: b.get() * 2)(box)) == (
        "{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }"
    )
