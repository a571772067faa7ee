"""Pytrees: nested containers of leaves, over jaxlib's C++ registry."""

from .functions import *  # noqa: F403
from .nodes import *  # noqa: F403
from .prefix import *  # noqa: F403
from .recursion import *  # noqa: F403
from .native import *  # noqa: F403
