"""Products of arrays, and norms: shapes, dtypes, contraction forms."""

import numpy as np

from tests.parity.case import Weak, call, sample

SHAPES = (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((), (3,)),
    ((), ()),
    ((2, 3), (2, 3)),
    ((3,), (4,)),
    ((0,), (0,)),
    ((2, 0), (0, 3)),
    ((0, 3), (3, 2)),
    ((2, 3), ()),
    ((4, 1, 2, 3), (5, 3, 2)),
)
PRODUCTS = ("dot", "matmul", "vdot", "inner", "outer", "kron", "vecdot", "matvec", "vecmat")
EINSUMS = (
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("ij->", (2, 3)),
    ("ij->i", (2, 3)),
    ("i,i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("i,i,i->i", (3,), (3,), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("...->...", (2, 3)),
    ("i...->...", (2, 3)),
    ("ij,j->i", (2, 3), (3,)),
    ("a,b,c->abc", (2,), (1,), (3,)),
    ("ij,jk->iz", (2, 3), (3, 4)),
    ("ij,jk->ik", (2, 3), (4, 4)),
    ("ij,jk->ik", (2, 3)),
    ("ijk->ij", (2, 3)),
    ("ij", (2, 3)),
    ("i j, j k -> i k", (2, 3), (3, 4)),
    ("ij,ik->ijk", (2, 3), (2, 4)),
    ("ijj->ij", (2, 3, 3)),
    ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)),
    ("$", (2,)),
    ("ij->ii", (2, 3)),
    ("i->", (0,)),
    (",->", (), ()),
    ("ba", (2, 3)),
)


def cases():
    for name in PRODUCTS:
        for shape, shape2 in SHAPES:
            yield call(f"jnp.{name}", sample("float32", shape, 50), sample("float32", shape2, 51))
        for left, right in (
            ("int32", "int32"),
            ("int8", "int8"),
            ("bool", "bool"),
            ("bfloat16", "bfloat16"),
            ("float16", "float32"),
            ("int32", "float32"),
            ("complex64", "complex64"),
            ("float32", "complex64"),
        ):
            yield call(
                f"jnp.{name}",
                sample(left, (3,) if name not in ("matvec", "vecmat") else (3, 3), 52),
                sample(right, (3,), 53),
            )
        yield call(f"jnp.{name}", Weak(2.0, (3,)), sample("int32", (3,), 54))
        yield call(f"jnp.{name}", 2, 3.0)
    for spec, *shapes in EINSUMS:
        yield call("jnp.einsum", spec, *(sample("float32", shape, 55) for shape in shapes))
    for dtype in ("int32", "complex64", "bfloat16", "bool"):
        yield call("jnp.einsum", "ij,jk->ik", sample(dtype, (2, 3), 56), sample(dtype, (3, 2), 57))
    yield call("jnp.einsum", "ij,jk", sample("int32", (2, 3), 56), sample("float32", (3, 2), 57))
    yield call(
        "jnp.einsum",
        "ij,jk->ik",
        sample("bfloat16", (2, 3), 56),
        sample("bfloat16", (3, 2), 57),
        preferred_element_type="float32",
    )
    yield call("jnp.einsum", sample("float32", (2, 3), 58), [0, 1], sample("float32", (3, 2), 59), [1, 2], [0, 2])
    yield from tensordots()
    yield from matrices()
    yield from nn_functions()


def tensordots():
    x, y = sample("float32", (2, 3, 4), 60), sample("float32", (3, 4, 2), 61)
    for axes in (2, 1, 0, ((1, 2), (0, 1)), ((0,), (2,)), (0, 2), (-1, 1), 4, ((0, 1), (1,)), ((5,), (0,))):
        yield call("jnp.tensordot", x, y, axes=axes)
    yield call("jnp.dot", x, sample("float32", (4,), 62), preferred_element_type="float32")
    yield call("jnp.cross", sample("float32", (3,), 63), sample("float32", (3,), 64))
    yield call("jnp.cross", sample("float32", (2, 3), 63), sample("float32", (3,), 64))
    yield call("jnp.cross", sample("float32", (4,), 63), sample("float32", (4,), 64))
    yield call("jnp.convolve", sample("float32", (4,), 65), sample("float32", (3,), 66))
    for mode in ("same", "valid", "nonsense"):
        yield call("jnp.convolve", sample("float32", (4,), 65), sample("float32", (3,), 66), mode=mode)
        yield call("jnp.correlate", sample("float32", (4,), 65), sample("float32", (3,), 66), mode=mode)


def matrices():
    square, wide = sample("float32", (3, 3), 67), sample("float32", (2, 3), 68)
    for offset in (0, 1, -2, 7):
        yield call("jnp.trace", square, offset)
    yield call("jnp.trace", sample("float32", (2, 3, 4), 69), axis1=1, axis2=2)
    for dtype in ("bool", "int8", "uint8", "uint32", "float16"):
        yield call("jnp.trace", sample(dtype, (3, 3), 69))
    for shape, offset in (((3, 3), 0), ((3, 3), 1), ((2, 3), 0), ((2, 3, 3), 0), ((2, 2), 2)):
        yield call("jnp.diagonal", Weak(2, shape), offset)
        yield call("jnp.trace", Weak(1.5, shape), offset)
    for order in (None, 1, 2, 3, np.inf, -np.inf, 0, -1, 0.5, "bad"):
        yield call("jnp.linalg.norm", sample("float32", (4,), 70), ord=order)
    for order in (None, 1, np.inf, -1, "fro", 3):
        yield call("jnp.linalg.norm", wide, ord=order)
        yield call("jnp.linalg.norm", wide, ord=order, axis=1)
    yield call("jnp.linalg.norm", wide, axis=(0, 1), keepdims=True)
    yield call("jnp.linalg.norm", sample("complex64", (3,), 71))
    yield call("jnp.linalg.norm", sample("int32", (3,), 71))
    for power in (0, 1, 3):
        yield call("jnp.linalg.matrix_power", square, power)
    yield call("jnp.linalg.multi_dot", [wide, square, wide.T])
    yield call("jnp.linalg.outer", sample("float32", (3,), 1), sample("float32", (2,), 1))
    yield call("jnp.linalg.vector_norm", wide, axis=0)
    yield call("jnp.linalg.matrix_transpose", wide)
    yield call("jnp.linalg.diagonal", square)


def nn_functions():
    x = sample("float32", (2, 3), 72)
    names = (
        "relu relu6 sigmoid softplus soft_sign silu swish log_sigmoid leaky_relu hard_sigmoid hard_silu hard_tanh elu "
        "celu selu gelu glu softmax log_softmax squareplus mish identity sparse_plus"
    ).split()
    for name in names:
        for value in (sample("float32", (2, 4), 73), sample("int32", (2, 4), 73), sample("bfloat16", (4,), 73), 0.5):
            yield call(f"nn.{name}", value, rtol=3e-2 if getattr(value, "dtype", None) == "bfloat16" else 1e-4)
    yield call("nn.gelu", x, approximate=False, rtol=1e-4)
    for args in ((np.array([0, 2, 5, -1], np.int32), 3), (1, 3), (np.array([0, 1], np.int32), 0)):
        yield call("nn.one_hot", *args)
    yield call("nn.one_hot", np.array([0, 1], np.int32), 2, dtype="int8", axis=0)
    yield call("nn.softmax", x, axis=0, where=sample("bool", (2, 3), 74))
