"""Mask rules of random numbers, each of which depends on its key and its true flat index only."""

from __future__ import annotations

from gradix._api.counted.masking import refuse, rule


@rule("random_wrap", "random_unwrap", "random_seed", "random_fold_in", "random_clone")
def _same(S, e, *xs):
    return S.same(e, xs)


@rule("random_bits", "random_split", "threefry2x32")
def _drawn(S, e, *xs):
    shape = e.outvars[0].aval.shape
    if any(S.is_open(d) for d in shape[1:]) and e.primitive.name != "threefry2x32":
        raise refuse(
            e,
            f"random numbers of shape {shape}: their places depend on a size that values decide",
            "draw for the greatest size and take the first ones, with that size as the first axis",
        )
    if e.params.get("impl", "fry") != "fry":  # other generators' numbers depend on how many there are
        raise refuse(
            e,
            f"random numbers of the generator {e.params['impl']!r}, of a number that values decide",
            "use a key of the default generator, gradix.random.key(seed)",
        )
    return S.same(e, xs)
