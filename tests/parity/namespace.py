"""The implementation under test, by name: the same cases run on Gradix and on JAX."""

import importlib
import os


class Namespace:
    """The public modules of one implementation: `.jax .jnp .lax .random .nn .tree_util .errors .image`, ….

    Modules are imported when first asked for, so that a missing one fails its own cases only.
    """

    _PATHS = {
        "jax": "",
        "jnp": ".numpy",
        "lax": ".lax",
        "random": ".random",
        "nn": ".nn",
        "tree_util": ".tree_util",
        "errors": ".errors",
        "image": ".image",
        "flatten_util": ".flatten_util",
        "special": ".scipy.special",
        "stats": ".scipy.stats",
        "signal": ".scipy.signal",
        "slinalg": ".scipy.linalg",
        "ndimage": ".scipy.ndimage",
        "interpolate": ".scipy.interpolate",
        "integrate": ".scipy.integrate",
        "cluster": ".scipy.cluster.vq",
        "rotation": ".scipy.spatial.transform",
        "optimize": ".scipy.optimize",
        "fft": ".scipy.fft",
        "iterative": ".scipy.sparse.linalg",
        "sparse": ".experimental.sparse",
        "jet": ".experimental.jet",
        "ode": ".experimental.ode",
        "optimizers": ".example_libraries.optimizers",
        "stax": ".example_libraries.stax",
        "ops": ".ops",
        "test_util": ".test_util",
    }

    def __init__(self, name):
        self.name = name

    def __getattr__(self, attr):
        if attr not in self._PATHS:
            raise AttributeError(attr)
        module = importlib.import_module(self.name + self._PATHS[attr])
        setattr(self, attr, module)
        return module

    def resolve(self, path):
        """The object at a dotted path that starts with one of the module names."""
        head, *rest = path.split(".")
        found = getattr(self, head)
        for part in rest:
            found = getattr(found, part)
        return found


def target():
    """The namespace named by the environment variable PARITY_TARGET (default: gradix)."""
    return Namespace(os.environ.get("PARITY_TARGET", "gradix"))
