"""Programs of loops and branches, written against a namespace; and such a namespace made of Python's own loops."""

import types

import numpy as np

f32 = np.float32
X = np.linspace(-1, 1, 5, dtype=f32)
W = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]], f32)
ROWS = np.sin(np.arange(18, dtype=f32)).reshape(6, 3)
A, B = f32(0.7), f32(2.0)


def cumulative(l, w, xs):
    return l.scan(lambda c, x: (l.sin(l.add(l.mul(c, w), x)), l.mul(c, x)), f32(0.3), xs)


def recurrent(l, w, h, xs):
    def step(h, x):
        h = l.tanh(l.add(l.dot_general(w, h, (((1,), (0,)), ((), ()))), x))
        return h, (h, l.reduce_sum(h, (0,)))

    return l.scan(step, h, xs)


def invariant(l, w, xs):
    return l.scan(lambda c, x: (l.add(l.mul(c, l.cos(w)), x), l.sin(w)), f32(0), xs)


def swapping(l, a, b, xs):
    return l.scan(lambda c, x: ((c[1], l.mul(c[0], l.add(x, b))), c[0]), (a, f32(2)), xs)


def counting(l, a, xs):
    def step(c, x):
        i, v = c
        return (l.add(i, np.int32(1)), l.mul(v, l.add(x, l.convert_element_type(i, f32)))), c

    return l.scan(step, (np.int32(0), a), xs)


def reversed_scan(l, a, xs):
    return l.scan(lambda c, x: (l.mul(c, l.sin(x)), l.add(c, x)), a, xs, reverse=True)


def unrolled(l, a, xs):
    return l.scan(lambda c, x: (l.mul(c, l.sin(x)), l.add(c, x)), a, xs, unroll=2)


def unrolled_fully(l, a, xs):
    return l.scan(lambda c, x: (l.mul(c, l.sin(x)), l.add(c, x)), a, xs, unroll=True, reverse=True)


def without_rows(l, a):
    return l.scan(lambda c, _: (l.sin(c), None), a, None, length=7)


def nested(l, a, xs):
    return l.scan(lambda c, x: l.scan(lambda d, y: (l.sin(l.add(l.mul(d, x), y)), d), c, xs), a, xs)


def constant_carry(l, a, xs):
    return l.scan(lambda c, x: ((c[0], l.mul(c[1], c[0])), x), (a, a), xs)


def stopped(l, a, xs):
    return l.scan(lambda c, x: (l.mul(l.stop_gradient(c), x), l.mul(c, x)), a, xs)


def quadratic_rows(l, a, xs):
    return l.scan(lambda c, x: (l.add(c, l.mul(a, x)), l.mul(c, l.mul(x, x))), f32(0), xs)


def cond_on_bool(l, p, a, b):
    return l.cond(p, lambda x: l.mul(l.sin(x), b), lambda x: l.mul(x, l.mul(x, b)), a)


def cond_on_data(l, p, a, b):
    return l.cond(l.gt(p, f32(0.5)), lambda x, y: (l.sin(x), y, f32(1)), lambda x, y: (l.mul(x, y), x, l.exp(y)), a, b)


def switching(l, p, a, b):
    return l.switch(
        l.convert_element_type(p, np.int32),
        [lambda x: l.mul(x, b), lambda x: l.sin(x), lambda x: f32(3), lambda x: l.exp(l.mul(x, x))],
        a,
    )


def while_counter(l, a, b):
    return l.while_loop(
        lambda c: l.lt(c[0], f32(5)), lambda c: (l.add(c[0], f32(1)), l.mul(c[1], l.sin(b)), c[2]), (f32(0), a, b)
    )


def while_data(l, a, b):
    return l.while_loop(
        lambda c: l.lt(c[0], l.add(b, f32(5))),
        lambda c: (l.add(l.mul(c[0], f32(1.3)), f32(1)), l.mul(c[1], c[0])),
        (a, b),
    )


def fori(l, a, b):
    return l.fori_loop(0, 5, lambda i, c: l.mul(l.add(c, l.convert_element_type(i, f32)), b), a)


def fori_unrolled(l, a, b):
    return l.fori_loop(1, 6, lambda i, c: l.mul(l.add(c, l.convert_element_type(i, f32)), b), a, unroll=2)


def cond_in_scan(l, a, xs):
    return l.scan(
        lambda c, x: l.cond(
            l.gt(x, f32(0)), lambda c: (l.sin(l.mul(c, x)), c), lambda c: (l.mul(c, f32(0.5)), l.mul(x, x)), c
        ),
        a,
        xs,
    )


def scan_in_cond(l, p, a, b):
    return l.cond(
        l.gt(p, f32(0.5)),
        lambda a: l.scan(lambda c, _: (l.sin(l.mul(c, b)), c), a, None, length=3)[0],
        lambda a: l.mul(a, b),
        a,
    )


def while_in_scan(l, a, xs):
    def step(c, x):
        stepped = l.while_loop(lambda k: l.lt(k, l.add(c, f32(3))), lambda k: l.add(k, l.add(l.mul(x, x), f32(1))), c)
        return stepped, c

    return l.scan(step, a, xs)


def mapped(l, a, xs):
    return l.map(lambda x: (l.mul(x, a), l.sin(x)), xs)


def mapped_in_batches(l, a, xs):
    return l.map(lambda x: (l.mul(x, a), l.sin(x)), xs, batch_size=2)


def associative(l, a, xs):
    return l.associative_scan(lambda p, q: (l.mul(p[0], q[0]), l.add(l.mul(p[1], q[0]), q[1])), (l.mul(xs, a), xs))


def associative_reversed(l, a, xs):
    return l.associative_scan(
        lambda p, q: (l.mul(p[0], q[0]), l.add(l.mul(p[1], q[0]), q[1])), (l.mul(xs, a), xs), reverse=True
    )


PROGRAMS = {
    cumulative: (A, X),
    recurrent: (W, ROWS[0], ROWS),
    invariant: (A, X),
    swapping: (A, f32(0.2), X),
    counting: (A, X),
    reversed_scan: (A, X),
    unrolled: (A, X),
    unrolled_fully: (A, X),
    without_rows: (A,),
    nested: (A, X),
    constant_carry: (A, X),
    stopped: (A, X),
    quadratic_rows: (A, X),
    cond_on_bool: (True, A, B),
    cond_on_data: (A, A, B),
    switching: (f32(1), A, B),
    while_counter: (A, B),
    while_data: (A, B),
    fori: (A, B),
    fori_unrolled: (A, B),
    cond_in_scan: (A, X),
    scan_in_cond: (A, A, B),
    while_in_scan: (A, X),
    mapped: (A, X),
    mapped_in_batches: (A, X),
    associative: (A, X),
    associative_reversed: (A, X),
}


def python_namespace(lax, tree_map, tree_leaves):
    """`lax` with Python's loops and branches: right wherever predicates are known."""

    def stacked(*ys):
        return tree_map(lambda *parts: lax.concatenate([lax.reshape(p, (1, *np.shape(p))) for p in parts], 0), *ys)

    def scan(f, carry, xs, length=None, reverse=False, unroll=1):
        n = len(tree_leaves(xs)[0]) if length is None else length
        ys = []
        for i in reversed(range(n)) if reverse else range(n):
            carry, y = f(carry, tree_map(lambda x: lax.index_in_dim(x, i, keepdims=False), xs))
            ys.append(y)
        return carry, stacked(*(ys[::-1] if reverse else ys))

    def while_loop(cond, body, carry):
        while cond(carry):
            carry = body(carry)
        return carry

    def fori_loop(start, end, body, carry, unroll=1):
        for i in range(start, end):
            carry = body(np.int32(i), carry)
        return carry

    def associative_scan(f, xs, reverse=False):
        rows = [tree_map(lambda x: lax.index_in_dim(x, i, keepdims=False), xs) for i in range(len(tree_leaves(xs)[0]))]
        if reverse:
            rows.reverse()
        out = rows[:1]
        for r in rows[1:]:
            out.append(f(out[-1], r))
        return stacked(*(out[::-1] if reverse else out))

    own = {
        "scan": scan,
        "while_loop": while_loop,
        "fori_loop": fori_loop,
        "associative_scan": associative_scan,
        "cond": lambda p, t, f, *ops: (t if p else f)(*ops),
        "switch": lambda i, branches, *ops: branches[min(max(int(i), 0), len(branches) - 1)](*ops),
        "map": lambda f, xs, batch_size=None: scan(lambda _, x: (None, f(x)), None, xs)[1],
    }
    return types.SimpleNamespace(**{**{name: getattr(lax, name) for name in lax.__all__}, **own})
