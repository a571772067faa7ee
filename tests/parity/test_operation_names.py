"""The scopes in the names of compiled operations are the reference's: transformations x named scopes x control flow."""

import re

import pytest

import gradix
import gradix.numpy

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.parity


def programs(lib) -> dict:
    """Functions of one array of `gradix` or of the reference, by name."""
    jnp, lax, scope = lib.numpy, lib.lax, lib.named_scope

    def plain(x):
        return jnp.sin(x) * 2

    def scoped(x):
        with scope("enc"):
            y = jnp.sin(x)
        with scope("dec"), scope("inner"):
            return jnp.exp(y) + y

    def scan(x):
        return lax.scan(lambda c, _: (jnp.sin(c) * c, None), x, None, length=3)[0]

    def scan_of_rows(x):
        def body(c, t):
            with scope("step"):
                return jnp.sin(c) * t, c

        return lax.scan(body, x.sum(), x)[1]

    def scan_within(x):
        with scope("outer"):
            return scan(x)

    def while_loop(x):
        return lax.while_loop(lambda c: c.sum() < 10, lambda c: jnp.exp(c) + 1, x)

    def fori(x):
        def body(i, c):
            with scope("it"):
                return c * jnp.cos(c)

        return lax.fori_loop(0, 3, body, x)

    def cond(x):
        return lax.cond(x.sum() > 0, jnp.cos, lambda v: jnp.tan(v) * 2, x)

    def cond_within(x):
        def yes(v):
            with scope("yes"):
                return jnp.cos(v)

        with scope("branching"):
            return lax.cond(x.sum() > 0, yes, lambda v: v * 3, x)

    def switch(x):
        return lax.switch(jnp.int32(x[0]), [jnp.sin, jnp.cos, jnp.tan], x)

    def jitted(x):
        @lib.jit
        def g(v):
            return jnp.tanh(v) * v

        return g(x) + 1

    def named(x):
        return lib.named_call(lambda v: jnp.sin(v) * 2, name="nc")(x)

    def checkpoint(x):
        def g(v):
            with scope("block"):
                return jnp.sin(jnp.cos(v))

        return lib.checkpoint(g)(x)

    def custom_jvp(x):
        f = lib.custom_jvp(jnp.sin)
        f.defjvp(lambda p, t: (jnp.sin(p[0]), jnp.cos(p[0]) * t[0]))
        return f(x) * 2

    def custom_vjp(x):
        f = lib.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda r, ct: (jnp.cos(r) * ct,))
        return f(x) * 2

    def mapped(x):
        return lib.vmap(lambda v: jnp.sin(v) * v)(x)

    def branches_in_loop(x):
        return lax.scan(lambda c, _: (lax.cond(c.sum() > 0, jnp.sin, jnp.cos, c), None), x, None, length=2)[0]

    return {
        f.__name__: f
        for f in (
            plain,
            scoped,
            scan,
            scan_of_rows,
            scan_within,
            while_loop,
            fori,
            cond,
            cond_within,
            switch,
            jitted,
            named,
            checkpoint,
            custom_jvp,
            custom_vjp,
            mapped,
            branches_in_loop,
        )
    }


def transformed(lib, how: str, f):
    """The function, transformed, and arguments for it."""
    x = lib.numpy.arange(1.0, 4.0)

    def loss(x):
        return f(x).sum()

    return {
        "itself": lambda: (f, (x,)),
        "grad": lambda: (lib.grad(loss), (x,)),
        "value_and_grad": lambda: (lib.value_and_grad(loss), (x,)),
        "jvp": lambda: (lambda x, t: lib.jvp(f, (x,), (t,)), (x, x)),
        "vjp": lambda: (lambda x, ct: lib.vjp(f, x)[1](ct), (x, x)),
        "vmap": lambda: (lib.vmap(f), (lib.numpy.stack([x, x]),)),
        "vmap of grad": lambda: (lib.vmap(lib.grad(loss)), (lib.numpy.stack([x, x]),)),
    }[how]()


def scopes(lib, how: str, name: str) -> set:
    """What stands before the last part of operations' names; without what only says how the reference composes functions."""
    inner, args = transformed(lib, how, programs(lib)[name])

    def f(*args):
        return inner(*args)

    f.__name__ = name
    text = lib.jit(f).lower(*args).compile().as_text()
    found = set()
    for n in re.findall(r'op_name="(jit\([^";]*)', text):
        # the reference wraps bodies and row accesses in functions, and a mapped loop's second test is its "body_pred"
        n = re.sub(r"/jit\(dynamic_\w+\)$", "/row", n).replace("/while/body_pred", "/while/body")
        n = re.sub(r"/jit\(dynamic_\w+\)", "", re.sub(r"/closed_call(?=/)", "", n))
        if not n.endswith(("/closed_call", "/while/body", "/while/cond", "/while/while", "/checkpoint")):
            found.add(n.rpartition("/")[0])
    return found - {f"jit({name})", ""}  # where a bare operation of the outermost function may be fused away


HOW = ("itself", "grad", "value_and_grad", "jvp", "vjp", "vmap", "vmap of grad")
BACKWARD = {"grad", "value_and_grad", "vjp", "vmap of grad"}
# Rules of the user's and blocks that are computed again are traced by the reference within a second jvp (and vmap), which its
# names tell: transpose(jvp(jvp())); here they are traced once.
NESTED = {"checkpoint", "custom_jvp", "custom_vjp"}
ALL = [
    (how, name)
    for how in HOW
    for name in programs(gradix)
    if (name != "while_loop" or how not in BACKWARD) and (how, name) != ("jvp", "custom_vjp")
]  # the reference refuses these


def once(scope: str) -> str:
    """A scope without the repetitions of a transformation within itself."""
    before = None
    while scope != before:
        before, scope = (
            scope,
            re.sub(r"(transpose|jvp)\((?:vmap\()?jvp\((?:vmap\()?(?:jvp\()?\)+(?=/|$)", r"\1()", scope),
        )
    return re.sub(r"\(+\)+", "()", scope)


@pytest.mark.parametrize("how, name", ALL[::6])
def test_scopes(how, name):
    check(how, name)


@pytest.mark.slow
@pytest.mark.parametrize("how, name", [p for i, p in enumerate(ALL) if i % 6])
def test_more_scopes(how, name):
    check(how, name)


def check(how, name):
    # JAX 0.12 names a function of its own inside of loops.
    ours, theirs = scopes(gradix, how, name), {s.replace("/eval_jaxpr", "") for s in scopes(jax, how, name)}
    if name in NESTED and how in BACKWARD:
        ours, theirs = (
            {once(s) for s in found} - {f"jit({name})/transpose()", f"jit({name})/vmap(transpose()"}
            for found in (ours, theirs)
        )  # a bare operation there may be fused away
    assert ours == theirs


def test_there_are_many_programs():
    assert len(ALL) > 110
