"""`jax._src.random.threefry2x32`: the functions of the default generator, for raw keys."""

from __future__ import annotations

from gradix.extend.random import threefry_2x32 as threefry_2x32, threefry_prng_impl

threefry_seed = threefry_prng_impl.seed
threefry_split = threefry_prng_impl.split
threefry_random_bits = threefry_prng_impl.random_bits
threefry_fold_in = threefry_prng_impl.fold_in
