"""How jaxprs print: 90 small functions and the text JAX 0.10.2 prints for each (tests/data/jaxprs.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix import lax

pytestmark = pytest.mark.x32

EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "jaxprs.json").read_text())

_INLINE = "JAX calls a jitted helper where gradix writes its equations in place"
_FORMULA = "gradix's rule is another formula, or needs fewer equations"
# Examples whose programs are not JAX's, equation by equation, and why; all others print the same text.
DIFFERENT = {
    "boolean_where": _INLINE,
    "cholesky_solve": _INLINE,
    "clip_sign": _INLINE,
    "concat_stack_pad": _INLINE,
    "cumsum_cumprod": _INLINE,
    "fft": _INLINE,
    "int_floor_divide_mod": _INLINE,
    "sort_argsort": _INLINE,
    "take_along_axis": _INLINE,
    "var_std": _INLINE,
    "where_arrays_mixed": _INLINE,
    "random_bernoulli_randint": _INLINE,
    "checkpoint_grad": _FORMULA,
    "grad_mlp_loss": _FORMULA,
    "grad_sin_square": _FORMULA,
    "hessian_scalar": _FORMULA,
    "jacfwd": _FORMULA,
    "jvp_tanh": _FORMULA,
    "logsumexp_softmax": _FORMULA,
    "relu_and_gelu": _FORMULA,
    "value_and_grad_softmax_xent": _FORMULA,
    "random_uniform_raw_key": "bounds of equal type are not converted",
    "jit_donate_static": "donation is a property of the compiled call, not of the equation",
    "pure_callback": "the callback prints as the function it is",
    "debug_print": "printing is a debug_callback like any other",
}


def argument(spec):
    if "dtype" in spec:
        return gradix.ShapeDtypeStruct(tuple(spec["shape"]), spec["dtype"], weak_type=spec.get("weak_type", False))
    if "python_scalar" in spec:
        return json.loads(spec["python_scalar"])
    if "typed_key" in spec:
        return gradix.random.key(0)
    if "dict" in spec:
        return {k: argument(v) for k, v in spec["dict"].items()}
    return [argument(v) for v in spec["list"]]


def trace(example):
    scope = {"jax": gradix, "jnp": jnp, "lax": lax, "np": np, "__name__": "example"}
    source = example["source"].replace("import jax\n", "")
    exec(source, scope)
    return gradix.make_jaxpr(scope["f"])(*[argument(a) for a in example["args"]])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e["name"])
def test_examples(example):
    closed = trace(example)
    types = [("~" if a.weak_type else "") + a.str_short() for a in closed.out_avals]
    assert types == example["out_avals"]
    if example["name"] not in DIFFERENT:
        assert str(closed).split("\n") == example["jaxpr"]


def test_the_list_of_differences_names_examples():
    assert not DIFFERENT.keys() - {e["name"] for e in EXAMPLES}


def show(f, *args):
    return str(gradix.make_jaxpr(f)(*args))


def sines(n):
    def f(x):
        for _ in range(n):
            x = lax.sin(x)
        return x

    return f


def test_two_equations_fit_on_a_line_and_three_do_not():
    assert show(sines(2), 1.0) == "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = sin b in (c,) }"
    assert show(sines(3), 1.0).count("\n") == 4


def test_names_go_on_after_z():
    lines = show(sines(30), 1.0).split("\n")
    assert lines[26:28] == ["    ba:f32[] = sin z", "    bb:f32[] = sin ba"]


def test_a_line_of_80_columns_is_full():
    text = show(lambda x: lax.squeeze(x, (0, 1, 2)), np.ones((1, 1, 1), np.float32))
    assert len(text) == 80 and "\n" not in text


def test_operands_wrap():
    lines = show(lambda *xs: lax.concatenate(xs, 0), *[np.ones(3, np.float32)] * 40).split("\n")
    assert lines[0] == "{ lambda ; a:f32[3] b:f32[3] c:f32[3] d:f32[3] e:f32[3] f:f32[3] g:f32[3] h:f32[3]"
    assert lines[5] == "    bo:f32[120] = concatenate[dimension=0] a b c d e f g h i j k l m n o p q r s"
    assert lines[6] == "      t u v w x y z ba bb bc bd be bf bg bh bi bj bk bl bm bn"


def test_results_wrap():
    lines = show(lambda x: lax.split(x, [1] * 20), np.ones(20, np.float32)).split("\n")
    assert lines[1].endswith("i:f32[1] j:f32[1]") and lines[2].startswith("      k:f32[1]")
    assert lines[3:5] == ["      t:f32[1] u:f32[1] = split[", "      axis=0"]


def test_a_program_without_equations():
    assert show(lambda x: x, 1.0) == "{ lambda ; a:f32[]. let  in (a,) }"
    assert show(lambda: 3) == "{ lambda ; . let  in (3:i32[],) }"
    assert show(lambda x: (), 1.0) == "{ lambda ; a:f32[]. let  in () }"


def test_literals():
    text = show(lambda: (True, 1, 1.5, 2j, np.float16(0.1), jnp.bfloat16(0.1), np.uint8(3)))
    assert text.split("\n")[-2:] == [
        "  in (True:bool[], 1:i32[], 1.5:f32[], 2j:c64[], 0.0999755859375:f16[], 0.10009765625:bf16[],",
        "    3:u8[]) }",
    ]


def test_a_call_repeated_is_printed_once():
    f = gradix.jit(lambda x: lax.sin(x))
    assert (
        show(lambda x: f(f(x)), 1.0).split("\n")[0]
        == "let lambda = { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } in"
    )


@pytest.mark.parametrize("n, apart", [(10, False), (11, True)])
def test_a_long_program_is_printed_apart(n, apart):
    assert show(lambda x: gradix.jit(sines(n))(x), 1.0).startswith("let f = ") is apart


def test_names_of_shared_programs_are_not_given_to_variables():
    def b(x):
        return lax.sin(x)

    f = gradix.jit(b)
    assert (
        show(lambda x: f(f(x)), 1.0)
        == """\
let b = { lambda ; a:f32[]. let c:f32[] = sin a in (c,) } in
{ lambda ; d:f32[]. let
    e:f32[] = jit[name=b jaxpr=b] d
    f:f32[] = jit[name=b jaxpr=b] e
  in (f,) }"""
    )


def test_shared_programs_of_one_name_are_numbered():
    def make():
        return gradix.jit(lambda x: lax.cos(x))

    f, g = make(), make()
    text = show(lambda x: g(g(f(f(x)))), 1.0)
    assert "let lambda = " in text and "let lambda1 = " in text and "jaxpr=lambda1" in text


def test_a_call_passing_arguments_through():
    f = gradix.jit(lambda x, y: (x, y, lax.sin(lax.cos(lax.exp(x))), lax.sin(y)))
    lines = show(lambda x, y: f(x, y), 1.0, np.ones(3, np.float32)).split("\n")
    assert lines[1] == "    e:f32[] f:f32[3] c:f32[] d:f32[3] = jit["
    assert lines[4] == "          g:f32[] = exp a"


def test_unread_results():
    assert (
        show(lambda x: lax.top_k(x, 1)[1], np.ones(3, np.float32))
        == "{ lambda ; a:f32[3]. let _:f32[1] b:i32[1] = top_k[axis=0 k=1] a in (b,) }"
    )


def test_options():
    closed = gradix.make_jaxpr(lambda x: gradix.jit(lax.sin)(lax.cos(x)))(1.0)
    assert (
        closed.pretty_print(print_shapes=False)
        == """\
{ lambda ; a. let
    b = cos a
    c = jit[name=sin jaxpr={ lambda ; b. let c = sin b in (c,) }] b
  in (c,) }"""
    )
    lines = closed.pretty_print(source_info=True).split("\n")
    assert lines[1].startswith("    b:f32[] = cos a      ") and "test_pretty.py:" in lines[1]
    assert lines[1].index("#") == lines[2].index("#") == lines[4].index("#")
    assert closed.pretty_print(print_effects=True).endswith("in (c,) : {  } }")
    assert repr(closed.eqns[0]) == "a:f32[] = cos b"


def test_addresses_are_hidden():
    f = gradix.make_jaxpr(lambda x: gradix.pure_callback(lambda v: v, gradix.ShapeDtypeStruct((), "float32"), x))
    assert "at 0xXXXXXXXXXXXX>" in str(f(1.0)) and str(f(1.0)) == str(f(1.0))
