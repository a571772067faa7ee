"""Changing shape, order and number of elements, and joining and splitting arrays."""

import numpy as np

from tests.parity.case import Case, Host, Weak, call, sample

X = sample("float32", (2, 3, 4), 30)
M = sample("int32", (2, 3), 31)
V = sample("float32", (5,), 32)


def cases():
    yield from shapes()
    yield from orders()
    yield from joins()
    yield from splits()
    yield from repeats()
    yield from selections()
    yield from methods()


def shapes():
    for shape in (
        (24,),
        (4, 6),
        -1,
        (-1, 4),
        (2, -1, 2),
        (5, 5),
        (-1, -1),
        (2, 3, 4, 1),
        (-1, 7),
        (2.0, 12),
        (0, -1),
        (),
    ):
        yield call("jnp.reshape", X, shape)
    yield call("jnp.reshape", X, (6, 4), order="F")
    yield call("jnp.reshape", X, (6, 4), order="K")
    for name in ("ravel", "atleast_1d", "atleast_2d", "atleast_3d", "squeeze", "transpose", "ndim", "shape", "size"):
        for value in (X, M, V, 2.5, 3, sample("bool", (1, 2, 1), 33), Weak(1.0, (1, 1)), [1, 2], Host(np.ones((1, 3)))):
            yield call(f"jnp.{name}", value)
    yield call("jnp.ravel", M, order="F")
    for axis in (0, 1, -1, (0, 2), 3, (0, 0), None):
        yield call("jnp.squeeze", sample("float32", (1, 3, 1), 34), axis)
        yield call("jnp.expand_dims", M, axis)
    yield call("jnp.expand_dims", M, (0, 3))
    yield call("jnp.expand_dims", M, (0, -1, 2))
    for shape in ((4, 2, 3), (2, 3), (2, 1), (3,), (2, 3, 1), 3, (0, 2, 3), (-1, 2, 3)):
        yield call("jnp.broadcast_to", M, shape)
    yield call("jnp.broadcast_arrays", M, sample("float32", (3,), 35), 2.0)
    yield call("jnp.broadcast_arrays", M, V)
    for shapes in (((2, 1), (3,)), ((2,), (3,)), ((), (0,)), ((4, 1, 3), (2, 1), (1,))):
        yield call("jnp.broadcast_shapes", *shapes)


def orders():
    for axes in ((2, 0, 1), (0, 1), (0, 0, 1), (-1, 0, 1), None, (3, 0, 1)):
        yield call("jnp.transpose", X, axes)
    for pair in ((0, 1), (0, -1), (1, 3)):
        yield call("jnp.swapaxes", X, *pair)
        yield call("jnp.moveaxis", X, *pair)
    yield call("jnp.moveaxis", X, (0, 1), (-1, 0))
    yield call("jnp.moveaxis", X, (0, 1), 0)
    yield call("jnp.rollaxis", X, 2)
    yield call("jnp.matrix_transpose", X)
    yield call("jnp.matrix_transpose", V)
    for axis in (None, 0, 1, -1, (0, 1), 5):
        yield call("jnp.flip", M, axis)
    for name in ("fliplr", "flipud", "rot90"):
        for value in (M, V, X):
            yield call(f"jnp.{name}", value)
    yield call("jnp.rot90", X, 3, (0, 2))
    for shift, axis in (
        (2, None),
        (-1, 0),
        (1, 1),
        ((1, 2), (0, 1)),
        (7, 1),
        (1, 4),
        ((1, 2), None),
        (0, 0),
        ((1, 2), 0),
    ):
        yield call("jnp.roll", M, shift, axis)
    yield call("jnp.roll", np.zeros((0,), np.float32), 3)


def joins():
    other = sample("float32", (2, 3), 36)
    for arrays in (
        [M, M],
        [M, other],
        (M, other, M),
        [M],
        [],
        [M, V],
        [V, V[:0]],
        [V, [1, 2]],
        [1.0, 2.0],
        V,
        M,
        [sample("int8", (2,), 1), sample("uint8", (1,), 1)],
        [Weak(1.0, (2,)), V],
        [Weak(1.0, (2,)), sample("int32", (2,), 1)],
    ):
        for name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"):
            yield call(f"jnp.{name}", arrays)
    for axis in (0, 1, -1, None, 2):
        yield call("jnp.concatenate", [M, M[:, :2] if axis == 1 else M], axis)
        yield call("jnp.stack", [M, M], axis)
    yield call("jnp.concatenate", [M, other], dtype="float16")
    yield call("jnp.append", V, 3)
    yield call("jnp.append", M, M, axis=0)
    yield call("jnp.block", [[M, M], [M, M]])
    yield call("jnp.block", [1, 2, 3])
    for index in (0, 2, -1, [1, 3], 9):
        yield call("jnp.insert", V, index, 7.0)
        yield call("jnp.delete", V, index)
    yield call("jnp.insert", M, 1, 5, axis=1)
    yield call("jnp.delete", M, 0, axis=0)


def splits():
    for parts in (5, 2, [2, 3], [1], [0, 7], 1, 0, [3, 2]):
        yield call("jnp.split", V, parts)
        yield call("jnp.array_split", V, parts)
    yield call("jnp.split", X, 2, axis=-1)
    yield call("jnp.split", X, 2, axis=1)
    for name in ("hsplit", "vsplit", "dsplit"):
        yield call(f"jnp.{name}", X, 2)
    yield call("jnp.unstack", M)
    yield call("jnp.unstack", M, axis=1)


def repeats():
    for reps in (2, (2, 1), (1, 2, 2), 0, (), -1, 1.5):
        yield call("jnp.tile", M, reps)
    for count, axis in ((2, None), (2, 0), (0, 1), ([1, 2, 3], 1), ([1, 2], 1), (2, 5), (-1, 0), ([2], 0)):
        yield call("jnp.repeat", M, count if not isinstance(count, list) else np.array(count, np.int32), axis)
    yield call("jnp.repeat", M, np.array([1, 2], np.int32), 0, total_repeat_length=5)
    for width in (1, (1, 2), ((1, 0), (0, 2)), ((1, 2),), -1, (1, 2, 3), 1.5, {0: (1, 1)}):
        yield call("jnp.pad", M, width)
    for mode in (
        "edge",
        "reflect",
        "symmetric",
        "wrap",
        "empty",
        "linear_ramp",
        "maximum",
        "minimum",
        "mean",
        "median",
        "nonsense",
    ):
        yield call("jnp.pad", sample("float32", (3, 4), 37), 2 if mode != "empty" else 0, mode=mode)
    yield call("jnp.pad", V, (1, 2), constant_values=(9, 8))
    yield call("jnp.pad", V, (6, 0), mode="reflect")
    yield call("jnp.resize", M, (3, 4))
    yield call("jnp.trim_zeros", np.array([0, 0, 1, 2, 0], np.int32))


def selections():
    mask = np.array([[True, False, True], [False, True, False]])
    for args in (
        (mask, M, -M),
        (mask, M, 2.5),
        (mask, 1, 2.0),
        (True, M, 0),
        (mask, V, M),
        (mask,),
        (mask, M),
        (M, 1.0, 0.0),
        (mask, Weak(1.0), Weak(2)),
        (mask[:, :1], M, M),
        (V, V, 0),
        (mask, sample("int8", (3,), 2), 300),
    ):
        yield call("jnp.where", *args)
    for values in (M, V, mask, 5, 0, np.array([0, 3, 0, 4], np.int32), np.zeros((0,), np.int32)):
        for name in ("nonzero", "flatnonzero", "argwhere"):
            yield call(f"jnp.{name}", values)
    yield call("jnp.nonzero", mask, size=5, fill_value=-1)
    yield call("jnp.nonzero", mask, size=2)
    yield call("jnp.where", mask, size=4)
    yield call("jnp.select", [mask, ~mask], [M, -M], 7)
    yield call("jnp.select", [mask], [M, M])
    yield call("jnp.piecewise", V, [V < 0, V >= 0], [-1.0, lambda x: x * 2])
    for args in (
        (V, -1, 1),
        (V, None, 0.5),
        (V, 0, None),
        (M, -1, 1),
        (M, 0.5, 1.5),
        (V, 1, -1),
        (V,),
        (M, np.array([0, 1, 2], np.int32), 3),
    ):
        yield call("jnp.clip", *args)
    for k in (0, 1, -1, 5):
        for name in ("diag", "diagonal", "tril", "triu", "diagflat"):
            yield call(f"jnp.{name}", M, k)
    for name in ("diag", "tril", "diagonal", "trace"):
        yield call(f"jnp.{name}", V)
        yield call(f"jnp.{name}", X)
    for mode in (None, "clip", "wrap", "fill", "raise"):
        yield call("jnp.take", V, np.array([0, -1, 7, -8], np.int32), mode=mode)
    for axis in (None, 0, 1, 2):
        yield call("jnp.take", M, np.array([[0, 1]], np.int32), axis=axis)
    yield call("jnp.take", V, 1.5)
    yield call("jnp.take_along_axis", M, np.array([[2, 0], [1, 1]], np.int32), 1)
    yield call("jnp.take_along_axis", M, np.array([2], np.int32), 1)
    yield call("jnp.take_along_axis", M, np.array([2, 9], np.int32), None)
    yield call("jnp.choose", np.array([0, 1, 0], np.int32), [sample("int32", (3,), 1), sample("int32", (3,), 2)])
    yield call("jnp.compress", np.array([True, False, True]), M, axis=1)
    yield call("jnp.extract", mask, M)
    yield call("jnp.array_equal", M, M)
    yield call("jnp.array_equal", M, V)
    yield call("jnp.allclose", M, M + 1e-9)
    yield call("jnp.isclose", V, V + np.float32(1e-3), rtol=1e-2)
    yield call("jnp.apply_along_axis", lambda v: v.sum(), 0, M)
    yield call("jnp.vectorize", lambda v: v)
    yield call("jnp.fill_diagonal", M, 0, inplace=False)
    yield call("jnp.fill_diagonal", M, 0)


def methods():
    texts = (
        "T",
        "mT",
        "real",
        "imag",
        "size",
        "ndim",
        "nbytes",
        "itemsize",
        "sum()",
        "mean(0)",
        "max(axis=1)",
        "argmax()",
        "reshape(3, 2)",
        "reshape((6,))",
        "reshape(-1)",
        "ravel()",
        "flatten()",
        "astype('int8')",
        "transpose()",
        "transpose(1, 0)",
        "swapaxes(0, 1)",
        "squeeze()",
        "clip(0, 1)",
        "round()",
        "conj()",
        "cumsum()",
        "prod()",
        "any()",
        "all()",
        "std()",
        "var()",
        "min()",
        "sort()",
        "argsort()",
        "dot(x.T)",
        "diagonal()",
        "trace()",
        "repeat(2)",
        "take(x.astype(int) % 2)",
        "tolist()",
        "item(1)",
        "item()",
        "view('int32')",
        "nonzero()",
        "copy()",
        "at[0].get()",
        "ptp()",
        "searchsorted(1.0)",
        "compress([True], 0)",
        "fill(2)",
        "resize(3)",
        "__len__()",
        "shape",
        "astype('int8').view('uint8')",
        "byteswap()",
        "dtype.name",
        "weak_type",
        "__bool__()",
        "__index__()",
        "__float__()",
    )
    x = sample("float32", (2, 3), 38)
    for text in texts:
        yield Case(f"x.{text}", lambda ns, text=text: _evaluate(ns, text, x))
    for text in (
        "x + 1",
        "1 - x",
        "x * 2.5",
        "2 / x",
        "x // 2",
        "x % 2",
        "7 % x",
        "x ** 2",
        "2 ** x",
        "-x",
        "abs(x)",
        "x @ x.T",
        "x < 1",
        "x == x",
        "x != 2",
        "x & 1",
        "x.astype(int) & 1",
        "x.astype(int) << 2",
        "~x.astype(int)",
        "divmod(x, 2)",
        "x[0] + np.ones(3)",
        "np.float32(2) * x",
        "np.ones((2, 1)) - x",
        "x + 'a'",
        "x + None",
        "x + [1, 2, 3]",
        "x == None",
        "x == 'a'",
        "round(x, 1)",
        "x ** 2.0",
        "x ** -1",
        "x.astype(int) ** -1",
        "x.astype(int) ** 3",
        "float(x[0, 0])",
        "int(x[0, 0])",
        "bool(x)",
        "len(x[0, 0])",
        "list(x[0])",
        "complex(x[0, 0])",
        "hash(x)",
        "[1, 2, 3][x.astype(int)[0, 0] * 0]",
        "x[0, 0] in [x[0, 0]]",
        "x and 1",
        "x @ 2",
        "x @ x",
        "+x",
        "x[0] @ x[1]",
        "np.add(x, 1)",
        "np.sin(x)",
        "np.asarray(x)",
        "np.concatenate([x, x])",
        "x.nothing",
        "f'{x[0, 0]:.2f}'",
    ):
        yield Case(text, lambda ns, text=text: _evaluate(ns, None, x, text))


def _evaluate(ns, text, x, whole=None):
    return eval(whole or f"x.{text}", {"np": np, "x": ns.jnp.asarray(x)})
