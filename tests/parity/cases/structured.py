"""Operations of lax with structure, drawn at random but reproducibly, with what they pull back; and what draws have found."""

import zlib

import numpy as np

from tests.parity.case import Case, sample

DRAWS = 12  # of each kind
DTYPES = ("float32", "float32", "float32", "int32", "complex64", "bfloat16", "uint8")
MODES = ("clip", "fill", "promise_in_bounds")

# Each is an expression of J (the library), L (its lax), N (its numpy) and A (asarray).
FOUND = """
J.vjp(lambda x: L.top_k(x, 1, axis=0)[0], N.zeros((3, 0)))[1](N.zeros((1, 0)))
L.bitcast_convert_type(A(3, 'int32'), 'int16')
L.bitcast_convert_type(A(1.5), 'uint8')
L.bitcast_convert_type(A(5, 'int8'), 'int4').astype(int)
L.conv_general_dilated(N.ones((1, 1, 3)), N.ones((1, 1, 1)), (1,), [(-2, -2)])
L.conv_general_dilated(N.ones((1, 1, 3)), N.ones((1, 1, 1)), (1,), [(-4, 2)])
L.conv_general_dilated(N.ones((1, 1, 3)), N.ones((1, 1, 1)), (1,), [(-6, 0)], lhs_dilation=(2,))
L.dot_general(N.ones(2, 'complex64'), N.ones(2), (((0,), (0,)), ((), ())), preferred_element_type='float16')
L.dot_general(N.ones(2, 'complex64'), N.ones(2), (((0,), (0,)), ((), ())), preferred_element_type='float32')
J.jvp(lambda x: L.reduce_window(x, A(1.0), L.mul, (2,), (1,), 'VALID'), (A([2.0, 3, 5]),), (A([1.0, 0, 2]),))
L.zeta(A([2.0, 3.0, 2.5]), A([-3.25, 0.0, -1.0]))
L.zeta(A(2.0), A(-20.5))
L.zeta(A(2.0), A(N.inf))
L.polygamma(A([0.0, 1.0, 2.0, 0.5, -1.0]), A([2.0, 0.0, -1.5, 1.0, 1.0]))
""".strip().splitlines()


def cases():
    for text in FOUND:
        yield Case(
            text, lambda ns, text=text: eval(text, {"J": ns.jax, "L": ns.lax, "N": ns.jnp, "A": ns.jnp.asarray}), 1e-4
        )
    for draw in (gather, scatter, convolution, contraction, window, dynamic, padding, ordering):
        for seed in range(DRAWS):
            label, f, args, linear = draw(np.random.RandomState(zlib.crc32(f"{draw.__name__} {seed}".encode())))
            yield Case(
                f"{draw.__name__} {seed}: {label}", lambda ns, f=f, args=args: f(ns, *map(ns.jnp.asarray, args)), 1e-4
            )
            for i in linear:
                yield Case(
                    f"{draw.__name__} {seed} pulled back to {i}",
                    lambda ns, f=f, args=args, i=i: _pulled(ns, f, args, i),
                    3e-4,
                    may_work=draw is padding,
                )  # JAX fails to pull some paddings back to the value


def _pulled(ns, f, args, i):
    args = [ns.jnp.asarray(a) for a in args]
    y, pull = ns.jax.vjp(lambda x: f(ns, *args[:i], x, *args[i + 1 :]), args[i])
    return pull(ns.jnp.asarray(sample(str(y.dtype), y.shape, 5)))[0]


def _pick(rng, values):
    return values[rng.randint(len(values))]


def _values(rng, dtype, shape):
    return sample(dtype, tuple(shape), rng.randint(1000))


def _smooth(dtype, *places):
    return places if dtype.startswith(("float", "complex")) else ()


def _indices(rng, operand):
    """Batching axes, the others in some order, index shape, and where each axis of the indices comes from."""
    order = [int(d) for d in rng.permutation(len(operand))]
    batching = sorted(order[: rng.randint(len(operand))]) if rng.rand() < 0.5 else []
    mapped = [d for d in order if d not in batching]
    mapped = mapped[: rng.randint(1, len(mapped) + 1)]  # XLA is wrong for indices without places in them
    axes = [("batch", d) for d in batching] + [("free", n) for n in rng.randint(1, 4, rng.randint(0, 3))]
    axes = [axes[i] for i in rng.permutation(len(axes))]
    shape = [operand[v] if kind == "batch" else int(v) for kind, v in axes]
    at = [next(i for i, a in enumerate(axes) if a == ("batch", d)) for d in batching]
    return batching, mapped, shape, at


def gather(rng):
    operand = rng.randint(1, 5, rng.randint(1, 4)).tolist()
    batching, mapped, shape, at = _indices(rng, operand)
    dropped = [d for d in range(len(operand)) if d not in batching and rng.rand() < 0.4]
    sizes = [1 if d in dropped or d in batching else rng.randint(1, n + 1) for d, n in enumerate(operand)]
    kept = len(operand) - len(dropped) - len(batching)
    offsets = sorted(rng.permutation(kept + len(shape))[:kept].tolist())
    mode, dtype = _pick(rng, MODES), _pick(rng, DTYPES)
    indices = rng.randint(-3, 7, (*shape, len(mapped)))
    if mode == "promise_in_bounds":
        indices %= np.array([operand[d] - sizes[d] + 1 for d in mapped])

    def f(ns, x, i):
        numbers = ns.lax.GatherDimensionNumbers(
            tuple(offsets), tuple(dropped), tuple(mapped), tuple(batching), tuple(at)
        )
        return ns.lax.gather(x, i, numbers, tuple(sizes), mode=mode)

    return (
        f"{dtype}{operand} {sizes} {mode}",
        f,
        (_values(rng, dtype, operand), indices.astype("int32")),
        _smooth(dtype, 0),
    )


def scatter(rng):
    operand = rng.randint(1, 5, rng.randint(1, 4)).tolist()
    batching, mapped, shape, at = _indices(rng, operand)
    inserted = [d for d in range(len(operand)) if d not in batching and rng.rand() < 0.5]
    sizes = [1 if d in inserted or d in batching else rng.randint(1, n + 1) for d, n in enumerate(operand)]
    window = [n for d, n in enumerate(sizes) if d not in inserted and d not in batching]
    places = sorted(rng.permutation(len(window) + len(shape))[: len(window)].tolist())
    inner, outer = iter(window), iter(shape)
    updates = [next(inner) if i in places else next(outer) for i in range(len(window) + len(shape))]
    name = _pick(rng, ("scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"))
    mode, dtype = _pick(rng, MODES), _pick(rng, DTYPES)
    if dtype == "complex64" and name in ("scatter_min", "scatter_max"):
        dtype = "float32"
    indices = rng.randint(-3, 7, (*shape, len(mapped)))
    if mode == "promise_in_bounds":
        indices %= np.array([operand[d] - sizes[d] + 1 for d in mapped])

    def f(ns, x, i, u):
        numbers = ns.lax.ScatterDimensionNumbers(
            tuple(places), tuple(inserted), tuple(mapped), tuple(batching), tuple(at)
        )
        return getattr(ns.lax, name)(x, i, u, numbers, mode=mode)

    args = _values(rng, dtype, operand), indices.astype("int32"), _values(rng, dtype, updates)
    return (
        f"{name} {dtype}{operand} {updates} {mode}",
        f,
        args,
        _smooth(dtype, 0, 2) if name in ("scatter_add", "scatter_sub") else (),
    )


def convolution(rng):
    n = rng.randint(0, 3)
    groups, batches = _pick(rng, ((1, 1), (1, 1), (2, 1), (1, 2)))
    sizes, kernel = rng.randint(3, 7, n).tolist(), rng.randint(1, 4, n).tolist()
    strides, spread, holes = [tuple(rng.randint(1, 3, n).tolist()) for _ in range(3)]
    pads = [tuple(p) for p in rng.randint(-1, 4, (n, 2)).tolist()]
    names = [list(kind + "HW"[:n]) for kind in ("NC", "OI", "NC")]
    layouts = ["".join(c[i] for i in rng.permutation(n + 2)) for c in names]
    features, dtype = rng.randint(1, 3), _pick(rng, ("float32", "float32", "complex64", "int32"))
    x = {"N": 2 * batches, "C": features * groups, **dict(zip("HW", sizes))}
    w = {"O": 2 * groups * batches, "I": features, **dict(zip("HW", kernel))}

    def f(ns, x, w):
        return ns.lax.conv_general_dilated(x, w, strides, pads, spread, holes, tuple(layouts), groups, batches)

    args = [_values(rng, dtype, [side[c] for c in layout]) for side, layout in zip((x, w), layouts)]
    return (
        f"{dtype} {','.join(layouts)} {strides} {pads} {spread} {holes} {groups} {batches}",
        f,
        args,
        _smooth(dtype, 0, 1),
    )


def contraction(rng):
    batch, summed, left, right = [rng.randint(0, 4, rng.randint(0, 3)).tolist() for _ in range(4)]

    def side(free):
        axes = [(kind, i, n) for kind, sizes in (("b", batch), ("s", summed), ("f", free)) for i, n in enumerate(sizes)]
        axes = [axes[i] for i in rng.permutation(len(axes))]
        at = {(kind, i): place for place, (kind, i, _) in enumerate(axes)}
        return (
            [n for *_, n in axes],
            tuple(at["s", i] for i in range(len(summed))),
            tuple(at["b", i] for i in range(len(batch))),
        )

    (x, xs, xb), (y, ys, yb) = side(left), side(right)
    dtypes = _pick(rng, DTYPES), _pick(rng, DTYPES)

    def f(ns, x, y):
        return ns.lax.dot_general(x, y, ((xs, ys), (xb, yb)))

    linear = [i for i, d in enumerate(dtypes) if _smooth(d, 0)]
    return f"{dtypes} {x} {y} {xs} {ys} {xb} {yb}", f, (_values(rng, dtypes[0], x), _values(rng, dtypes[1], y)), linear


def window(rng):
    n = rng.randint(1, 4)
    shape, size = rng.randint(2, 6, n).tolist(), tuple(rng.randint(1, 4, n).tolist())
    strides, spread, holes = [tuple(rng.randint(1, 3, n).tolist()) for _ in range(3)]
    pads = _pick(rng, ("SAME", "VALID", [tuple(p) for p in rng.randint(0, 3, (n, 2)).tolist()]))
    name, start = _pick(rng, (("add", 0), ("max", -np.inf), ("min", np.inf), ("mul", 1)))

    def f(ns, x):
        return ns.lax.reduce_window(x, np.float32(start), getattr(ns.lax, name), size, strides, pads, spread, holes)

    return (
        f"{name} {shape} {size} {strides} {pads} {spread} {holes}",
        f,
        (_values(rng, "float32", shape),),
        () if name == "mul" else (0,),
    )


def dynamic(rng):
    shape, dtype = rng.randint(1, 5, rng.randint(1, 4)).tolist(), _pick(rng, DTYPES)
    part, starts = [rng.randint(0, n + 1) for n in shape], [np.int32(i) for i in rng.randint(-6, 7, len(shape))]
    x, u = _values(rng, dtype, shape), _values(rng, dtype, part)
    if rng.rand() < 0.5:
        return (
            f"slice {dtype}{shape} {part}",
            lambda ns, x: ns.lax.dynamic_slice(x, starts, part),
            (x,),
            _smooth(dtype, 0),
        )
    return (
        f"update {dtype}{shape} {part}",
        lambda ns, x, u: ns.lax.dynamic_update_slice(x, u, starts),
        (x, u),
        _smooth(dtype, 0, 1),
    )


def padding(rng):
    shape, dtype = rng.randint(0, 5, rng.randint(0, 4)).tolist(), _pick(rng, DTYPES)
    config = [(*rng.randint(-2, 4, 2).tolist(), rng.randint(0, 3)) for _ in shape]
    args = _values(rng, dtype, shape), _values(rng, dtype, ())
    return f"{dtype}{shape} {config}", lambda ns, x, v: ns.lax.pad(x, v, config), args, _smooth(dtype, 0, 1)


def ordering(rng):
    shape, axis, count = rng.randint(0, 5, 2).tolist(), rng.randint(-2, 2), rng.randint(1, 4)
    keys, dtypes = rng.randint(1, count + 1), [_pick(rng, DTYPES) for _ in range(count)]
    args = [
        np.asarray(np.round(_values(rng, "float32", shape)), d) if d[0] == "f" else _values(rng, d, shape)
        for d in dtypes
    ]
    return f"{dtypes}{shape} {axis} {keys}", lambda ns, *xs: ns.lax.sort(xs, dimension=axis, num_keys=keys), args, ()
