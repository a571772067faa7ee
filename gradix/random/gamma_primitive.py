"""The draw of gamma numbers as a primitive, for libraries that bind it or register rules for it."""

from __future__ import annotations

from gradix._api.derivatives.autodiff import jvp
from gradix._api.mapping.vmap import vmap
from gradix._core.aval import make_aval
from gradix._core.user_primitive import Primitive
from gradix.interpreters import ad, batching, mlir
from gradix.random.gammas import draw_gamma


def _drawn(keys, a, *, log_space: bool):
    """Numbers of the shape of `a`, each axis of `keys` being one of the leading axes of `a`."""
    draw = lambda key, a: draw_gamma(  # noqa: E731
        key, a, shape=a.shape, dtype=a.dtype, log_space=log_space
    )
    for _ in range(keys.ndim):
        draw = vmap(draw)
    return draw(keys, a)


def _type(keys, a, *, log_space: bool):
    if keys.shape != a.shape[: keys.ndim]:
        raise ValueError(
            f"random_gamma: the shape of the keys, {keys.shape}, must be where that of a begins, got {a.shape}."
        )
    return make_aval(a.shape, a.dtype)


def _batched(args, dims, *, log_space: bool):
    (keys, a), (key_dim, a_dim) = args, dims
    size = keys.shape[key_dim] if key_dim is not None else a.shape[a_dim]
    keys = batching.bdim_at_front(keys, key_dim, size)
    a = batching.bdim_at_front(a, a_dim, size)
    return random_gamma_p.bind(keys, a, log_space=log_space), 0


def _jvp(primals, tangents, *, log_space: bool):
    (keys, a), t = primals, ad.instantiate_zeros(tangents[1])
    drawn = random_gamma_p.bind(keys, a, log_space=log_space)
    return drawn, jvp(lambda a: _drawn(keys, a, log_space=log_space), (a,), (t,))[1]


random_gamma_p = Primitive("random_gamma")
random_gamma_p.consumes_keys = True
random_gamma_p.def_impl(_drawn)
random_gamma_p.def_abstract_eval(_type)
mlir.register_lowering(random_gamma_p, mlir.lower_fun(_drawn, multiple_results=False))
batching.primitive_batchers[random_gamma_p] = _batched
ad.primitive_jvps[random_gamma_p] = _jvp
