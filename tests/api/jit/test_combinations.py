"""The options of `jit` together: each works with every other, or is refused for a reason that docs/compilation.md gives."""

import itertools

import numpy as np
import pytest

import gradix
import gradix.numpy as jnp
from gradix.errors import ConcretizationTypeError, TracerBoolConversionError
from gradix.sharding import Mesh, NamedSharding, PartitionSpec

OPTIONS = ("check", "specialize", "symbolic", "static", "donate", "refs", "device", "shardings")
SETS = [
    s
    for n in (1, 2, len(OPTIONS) - 1)
    for s in itertools.combinations(OPTIONS, n)
    if not {"device", "shardings"} <= {*s}
]
ALL = [
    s
    for n in range(len(OPTIONS) + 1)
    for s in itertools.combinations(OPTIONS, n)
    if not {"device", "shardings"} <= {*s}
]


def made(chosen: tuple):
    """A function with these options: `f(x, factor[, ref])` is log(x) * factor; the ref counts the calls."""

    def f(x, factor, *refs):
        for ref in refs:
            ref[...] += 1
        if "specialize" in chosen and x.sum() > 1e6:
            return x
        return jnp.log(x) * factor

    options = {}
    if "check" in chosen:
        options["check"] = "nan"
    if "specialize" in chosen:
        options["specialize"] = True
    if "symbolic" in chosen:
        options["symbolic"] = ("n", *[None] * (("static" not in chosen) + ("refs" in chosen)))
    if "static" in chosen:
        options["static_argnums"] = 1
    if "donate" in chosen:
        options["donate_argnums"] = 0
    if "device" in chosen:
        options["device"] = gradix.devices()[0]
    if "shardings" in chosen:
        options["in_shardings"] = NamedSharding(Mesh(gradix.devices()[:1], ("a",)), PartitionSpec())
    return gradix.jit(f, **options)


def together(chosen: tuple) -> None:
    f, has_ref = made(chosen), "refs" in chosen
    ref = gradix.new_ref(jnp.zeros(()))
    extra = (ref,) if has_ref else ()
    count = 0
    for n in (3, 4):
        want = 2 * np.log(np.arange(1, n + 1, dtype="f4"))
        for _ in range(2):
            x = jnp.arange(1.0, n + 1) + 0
            np.testing.assert_allclose(f(x, 2, *extra), want, rtol=1e-6, err_msg=f"{chosen}, {n}")
            count += has_ref
            assert x.is_deleted() == ("donate" in chosen)
    x = jnp.arange(1.0, 5) + 0
    if "check" in chosen:
        with pytest.raises(FloatingPointError, match="log"):
            f(-x, 2, *extra)
    assert float(ref[...]) == count, "a call that fails writes nothing"
    x = jnp.arange(1.0, 5) + 0
    inside = {
        "jit": lambda x: gradix.jit(lambda x: f(x, 2, *extra))(x),
        "vmap": lambda x: gradix.vmap(lambda x: f(x, 2, *extra))(x[None])[0],
    }
    for name, call in inside.items():
        if "specialize" in chosen:
            with pytest.raises(
                (ConcretizationTypeError, TracerBoolConversionError),
                match="pass specialize=True to the outermost|Under vmap",
            ):
                call(x)
        else:
            np.testing.assert_allclose(call(x), want, rtol=1e-6, err_msg=f"{chosen} in {name}")
            count += has_ref
            if "check" in chosen and not has_ref:
                with pytest.raises(FloatingPointError, match="log"):
                    call(-x)
    np.testing.assert_allclose(
        gradix.grad(lambda x: f(x, 2, *extra).sum())(x), 2 / np.arange(1, 5), rtol=1e-6, err_msg=f"{chosen} in grad"
    )
    count += has_ref
    assert float(ref[...]) == count
    if "specialize" not in chosen:
        compiled = f.lower(x, 2, *extra).compile()
        given = (x, *([] if "static" in chosen else [2]), *extra)
        np.testing.assert_allclose(compiled(*given), want, rtol=1e-6, err_msg=f"{chosen} compiled")
        assert float(ref[...]) == count + has_ref
    assert f.stats().traces <= 4, chosen


@pytest.mark.x32
@pytest.mark.parametrize("chosen", SETS, ids="+".join)
def test_options_work_together(chosen):
    together(chosen)


@pytest.mark.slow
@pytest.mark.x32
@pytest.mark.parametrize("chosen", ALL, ids=lambda s: "+".join(s) or "none")
def test_all_options_work_together(chosen):
    together(chosen)
