"""The implementation under test, by name: the same cases run on Gradix and on JAX."""

import importlib
import os


class Namespace:
    """The public modules of one implementation: `.jax .jnp .lax .random .nn .tree_util .errors .image .flatten_util .special .stats`.

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
