"""Pytrees: nested containers of leaves, over jaxlib's C++ registry."""

from .flattening import *  # noqa: F403
from .functions import *  # noqa: F403
from .nodes import *  # noqa: F403
from .prefix import *  # noqa: F403
from .native import *  # noqa: F403
