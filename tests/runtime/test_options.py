"""What is asked of the compiler for which program."""

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix._core.aval import make_aval
from gradix._platforms.cpu import compiling
from gradix._runtime import xla, xla_options

AVAL = make_aval((4,), np.dtype("float32"))
TEXT = (
    "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> "
    "{ %0 = stablehlo.add %a, %a : tensor<4xf32>\n return %0 : tensor<4xf32> } }"
)
SMALL, LARGE = np.ones((16, 32), np.float32), np.ones((64, 64), np.float32)


@pytest.mark.parametrize(
    "f, args, unrolled",
    [
        (jnp.tanh, (SMALL,), False),
        (jnp.tanh, (LARGE,), True),
        (lambda x: x.sum(), (LARGE,), True),
        (lambda x: gradix.lax.fori_loop(0, 3, lambda i, c: c @ c, x), (np.eye(4, dtype="f4"),), True),
    ],
)
def test_loops_over_small_arrays_are_not_unrolled(f, args, unrolled):
    assert compiling.has_only_short_loops(gradix.jit(f).lower(*args)._module.facts, 2) is not unrolled


FEW = np.linspace(-3, 3, 8, dtype="f4")


@pytest.mark.parametrize(
    "f, args, narrow",
    [
        (lambda x: jnp.sin(x) * 2, (FEW,), True),
        (lambda x: jnp.power(jnp.abs(x), 0.3), (FEW,), True),
        (gradix.jit(jnp.cos), (FEW,), True),  # inside
        (gradix.grad(lambda x: jnp.sin(x).sum()), (FEW,), True),
        (jnp.tanh, (FEW,), False),
        (jnp.sin, (SMALL,), False),
        (lambda x: (jnp.sin(x)[:, None] * jnp.ones(9)).sum(0), (FEW,), False),  # large on the way
        (lambda x: jnp.sin(x).sum() + gradix.jit(lambda x: jnp.outer(x, x).sum())(x), (FEW,), False),
        (lambda x: jnp.sin(x) + jnp.asarray(LARGE).sum(), (FEW,), False),  # captured
    ],
)
def test_vectors_are_narrow_where_long_formulas_meet_small_arrays(f, args, narrow):
    assert compiling.has_long_formulas_of_few(gradix.jit(f).lower(*args)._module.facts, 2) is narrow


@pytest.mark.parametrize("function", [jnp.sin, jnp.cos, lambda x: jnp.power(jnp.abs(x), x)])
def test_narrow_vectors_give_the_same_bits(function):
    x = np.array([*FEW[:5], 1e5, -1e9, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 1.0], "f4")
    wide, narrow = [
        gradix.jit(lambda x: function(x) * 2 + x, compiler_options={"xla_cpu_prefer_vector_width": n})(x)
        for n in (256, 128)
    ]
    np.testing.assert_array_equal(wide, narrow)


def _layers(count, width=16, layer=lambda x, w: jnp.tanh(x @ w)):
    def loss(ws, x):
        for w in ws:
            x = layer(x, w)
        return (x**2).mean()

    rng = np.random.default_rng(0)
    return (
        gradix.grad(loss),
        [rng.normal(size=(width, width)).astype("f4") / 4 for _ in range(count)],
        SMALL[:8, :width],
    )


@pytest.mark.parametrize(
    "count, layer, newer",
    [
        (2, lambda x, w: jnp.tanh(x @ w), False),
        (6, lambda x, w: jnp.tanh(x @ w), True),
        (6, gradix.jit(lambda x, w: jnp.tanh(x @ w)), True),
        (6, lambda x, w: x * w[0], False),  # one fusion
        (6, lambda x, w: gradix.lax.fori_loop(0, 2, lambda i, c: c @ w, x), False),
        (6, lambda x, w: jnp.cumsum(x @ w, 0), False),  # windows
    ],
)
def test_repeated_layers_are_compiled_by_what_compiles_equal_ones_once(count, layer, newer):
    f, ws, x = _layers(count, layer=layer)
    lowered = gradix.jit(f).lower(ws, x)
    assert compiling.compiles_repeats_once(lowered._module.facts, 2) is newer


@pytest.mark.parametrize(
    "f, newer",
    [
        (jnp.sin, False),
        (lambda x: jnp.sin(x) * 2 + x, False),
        (lambda x: jnp.exp(jnp.sin(x) * 2 + x), True),
        (lambda x: jnp.sqrt(jnp.cos(x)), True),
        (jnp.exp, True),
        (lambda x: jnp.sin(x) @ x, True),
        (lambda x: jnp.sin(x) + x + x + x + x + x + x, True),
    ],
)
def test_a_sine_of_a_large_array_is_compiled_by_what_takes_less_time(f, newer):
    x = np.zeros(1 << 13, "f4")
    assert compiling.compiles_repeats_once(gradix.jit(f).lower(x)._module.facts, 2) is newer


@pytest.mark.parametrize("n, newer", [(8, False), (32, False), (64, True)])
def test_loops_over_arrays_that_are_not_small_go_to_the_newer_generator(n, newer):
    def potentials(x):
        cost = (x[:, None] - x[None]) ** 2
        step = lambda _, f: -jnp.log(jnp.exp(f[:, None] - cost).sum(0))
        return gradix.lax.fori_loop(0, 30, step, x)

    for f in (potentials, gradix.grad(lambda x: potentials(x).sum())):
        lowered = gradix.jit(f).lower(np.linspace(0, 1, n, dtype="f4"))
        assert compiling.compiles_repeats_once(lowered._module.facts, 2) is newer


def _repeat(count, step):
    def f(y):
        for _ in range(count):
            y = step(y)
        return y

    return f


@pytest.mark.parametrize(
    "count, step, newer",
    [
        (5, lambda y: jnp.sin(y) + y[::-1], False),
        (20, lambda y: jnp.sin(y) + y[::-1], True),  # 2²⁰ places
        (20, gradix.jit(lambda y: jnp.sin(y) + y[::-1]), True),
        (20, lambda y: jnp.sin(y) + y, False),  # one place
        (20, lambda y: jnp.sin(y) + y[::-1] - y.max(), True),
        (3, lambda y: jnp.tanh(y - y.max()), False),
        (8, lambda y: jnp.tanh(y - y.max()), True),  # kernels like an earlier one
        (600, lambda y: jnp.sin(y) * 2 + y, False),
        (900, lambda y: jnp.sin(y) * 2 + y, True),  # too many to descend through
    ],
)
def test_what_the_older_generator_does_not_survive_goes_to_the_newer_one(count, step, newer):
    lowered = gradix.jit(_repeat(count, step)).lower(np.ones(8, "f4"))
    assert compiling.compiles_repeats_once(lowered._module.facts, 2) is newer


def test_values_that_are_needed_at_ever_more_places_are_compiled_in_no_time():
    f = _repeat(40, lambda y: jnp.sin(y) * 0.5 + y[::-1] * 0.5)
    x = np.linspace(0, 1, 8, dtype="f4")
    np.testing.assert_allclose(gradix.jit(f)(x), f(x), rtol=1e-5)


@pytest.mark.slow
def test_a_chain_of_ten_thousand_operations_is_compiled():
    f = _repeat(3333, lambda y: jnp.sin(y) * 0.5 + y * 0.5)
    x = np.linspace(0, 1, 8, dtype="f4")
    np.testing.assert_allclose(gradix.jit(f)(x), f(x), rtol=1e-4)


def test_repeated_layers_give_the_same_bits_whatever_compiles_them(has_flag):
    if not has_flag("xla_cpu_use_fusion_emitters", False):
        pytest.skip("this XLA has one way to compile them")
    f, ws, x = _layers(8)
    outs = [gradix.jit(f, compiler_options={"xla_cpu_use_fusion_emitters": newer})(ws, x) for newer in (False, True)]
    for one, other in zip(*outs):
        np.testing.assert_array_equal(one, other)


NHWC = ("NHWC", "HWIO", "NHWC")


def _convolve(x, w, **params):
    return gradix.lax.conv_general_dilated(
        x, w, **{"window_strides": (1, 1), "padding": "SAME", "dimension_numbers": NHWC, **params}
    )


def _zeros(*shapes, dtype="f4"):
    return [np.zeros(shape, dtype) for shape in shapes]


@pytest.mark.rewritten
@pytest.mark.parametrize(
    "f, args, spread",
    [
        (_convolve, _zeros((8, 16, 16, 16), (3, 3, 16, 32)), True),
        (gradix.jit(_convolve), _zeros((8, 16, 16, 16), (3, 3, 16, 32)), True),
        (
            lambda x, w: gradix.lax.scan(lambda c, _: (_convolve(c, w), None), x, None, 2)[0],
            _zeros((8, 16, 16, 24), (3, 3, 24, 24)),
            True,
        ),
        (lambda x, w: _convolve(x, w, dimension_numbers=None), _zeros((8, 16, 16, 16), (32, 16, 3, 3)), True),
        (lambda x, w: _convolve(x, w, feature_group_count=2), _zeros((8, 16, 16, 32), (3, 3, 16, 32)), True),
        (_convolve, _zeros((8, 16, 16, 16), (3, 3, 16, 32), dtype="float16"), False),
        (_convolve, _zeros((1, 8, 8, 16), (3, 3, 16, 32)), False),  # little work
        (_convolve, _zeros((8, 32, 32, 3), (3, 3, 3, 32)), False),  # few features
        (_convolve, _zeros((8, 64, 64, 64), (1, 1, 64, 64)), False),  # products
        (lambda x, w: _convolve(x, w, feature_group_count=64), _zeros((8, 64, 64, 64), (3, 3, 1, 64)), False),
        (
            lambda x, w: _convolve(x, w, window_strides=(1,), dimension_numbers=None),
            _zeros((8, 64, 999), (64, 64, 3)),
            False,
        ),
        (_convolve, _zeros((8, 32, 32, 32), (3, 3, 32, 16)), False),  # to few features
        (
            lambda x, w, v: _convolve(_convolve(x, w), v),
            _zeros((8, 32, 32, 3), (3, 3, 3, 16), (3, 3, 16, 32)),
            True,
        ),  # the first a sum
        (lambda x, w, v: _convolve(_convolve(x, w), v), _zeros((8, 32, 32, 3), (5, 5, 3, 32), (3, 3, 32, 64)), False),
        (lambda x, w, v: _convolve(_convolve(x, w), v), _zeros((8, 32, 32, 3), (3, 3, 3, 32), (3, 3, 32, 512)), True),
        (lambda x, w, v: _convolve(_convolve(x, w), v), _zeros((8, 32, 32, 8), (5, 5, 8, 16), (3, 3, 16, 24)), True),
    ],
)
def test_convolutions_of_many_features_are_divided_among_cores(f, args, spread):
    facts = gradix.jit(f).lower(*args)._module.facts
    assert compiling.has_convolutions_to_divide(facts, 2) is spread and not compiling.has_convolutions_to_divide(
        facts, 1
    )


def test_divided_convolutions_are_the_same():
    rng = np.random.default_rng(0)
    x, w, b = (rng.integers(-4, 5, s).astype("f4") for s in ((8, 16, 16, 16), (3, 3, 16, 32), (32, 32)))
    function = "xla_cpu_experimental_ynn_fusion_type"
    asked = dict(xla_options._flags(xla.options(spread_convolutions=True), "cpu"))
    outs = [
        gradix.jit(lambda x, w, b: jnp.maximum(_convolve(x, w) + 1, 0) @ b, compiler_options=options)(x, w, b)
        for options in ({}, {k: asked[k] for k in (function,) if k in asked})
    ]
    np.testing.assert_array_equal(*outs)  # whole numbers


# Each alone and all together, as the quick tier and the table of the platform ask for them.
EACH = [
    {"small_loops": True},
    {"small_loops": True, "small_dots": True},
    {"quick": True},
    {"fusion_emitters": False},
    {"unroll": False},
    {"narrow": True},
    {"spread_convolutions": True},
]
ALL = {name: value for options in EACH for name, value in options.items()}


@pytest.mark.parametrize("asked", [*EACH, ALL], ids=str)
def test_every_jaxlib_compiles_with_the_options_it_has(asked, monkeypatch):
    monkeypatch.setattr(xla_options, "_dropped", set())
    made = xla.compile(TEXT, [AVAL], [AVAL], options=xla.options(**asked))
    assert set(xla_options._dropped) <= set(xla_options._flags(xla.options(**asked), "cpu"))
    np.testing.assert_array_equal(xla.get(made([xla.put(np.arange(4, dtype="f4"), AVAL)])[0]), [0, 2, 4, 6])


@pytest.mark.parametrize(
    "message",
    [
        "While setting option xla_cpu_experimental_ynn_fusion_type, 'X' is not a valid enum value.",
        "No such compile option: 'xla_cpu_experimental_ynn_fusion_type'",
    ],
)
def test_a_value_that_is_not_known_is_left_out(message, monkeypatch):
    monkeypatch.setattr(xla_options, "_dropped", set())
    error = RuntimeError(message)
    asked = xla.options(spread_convolutions=True)
    assert xla_options.drop_unknown(asked, error) and not xla_options.drop_unknown(asked, error)
    assert b"LIBRARY_FUSION" not in xla_options.build(asked, np.zeros((1, 1))).SerializeAsString()


def test_what_is_asked_reaches_the_compiler_and_the_key():
    where = np.zeros((1, 1))
    texts = [
        xla_options.build(xla.options(unroll=unroll, small_loops=True), where).SerializeAsString()
        for unroll in (True, False)
    ]
    assert [b"xla_cpu_disable_loop_unrolling" in text for text in texts] == [False, True]
    assert all(b"xla_cpu_small_while_loop_byte_threshold" in text for text in texts)
    keys = {
        xla.options_key(xla.options(**{name: value}), "cpu")
        for name, value in (
            ("unroll", False),
            ("unroll", True),
            ("small_loops", True),
            ("quick", True),
            ("fusion_emitters", False),
            ("narrow", True),
            ("spread_convolutions", True),
        )
    }
    assert len(keys) == 7
    x = np.linspace(-2, 2, SMALL.size, dtype="f4").reshape(SMALL.shape)
    np.testing.assert_allclose(gradix.jit(jnp.tanh)(x), np.tanh(x), rtol=1e-6)
