"""Running programs written for JAX: gradix's modules under the names `jax`, `jax.numpy`, ..."""

from gradix.compat.install import (
    JAX_VERSION as JAX_VERSION,
    install_as_jax as install_as_jax,
    is_installed as is_installed,
    uninstall as uninstall,
)
