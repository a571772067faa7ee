"""Names of JAX's own modules, `jax._src.X`, that libraries import: adapters over public parts, one small module per area.

What is imported here is all there is; an internal name that nobody mapped raises an error that names it. The table says which
libraries use which area, and what the public way is.
"""

USERS = {
    "traceback_util": ("equinox, flax, haiku", "gradix.extend.source_info_util"),
    "dispatch": ("equinox, chex", "gradix.effects_barrier"),
    "dtypes": ("equinox, flax, optax", "gradix.dtypes"),
    "ad_util": ("lineax, equinox", "gradix.interpreters.ad, gradix.lax"),
}
