"""The version of Gradix."""

from gradix._version import __version__ as __version__

__version_info__ = tuple(map(int, __version__.split(".")[:3]))
