"""`jax._src.traceback_util`: files whose frames tracebacks leave out."""

from gradix._base.source import exclude as register_exclusion, include, is_inside
from gradix._base.tracebacks import UnfilteredStackTrace, boundary

__all__ = ["UnfilteredStackTrace", "api_boundary", "include_frame", "register_exclusion"]


class _Excluded(list):
    """The list of files left out of tracebacks, which a library changes."""

    def append(self, path: str) -> None:
        super().append(path)
        register_exclusion(path)

    def remove(self, path: str) -> None:
        super().remove(path)
        include(path)


_exclude_paths = _Excluded()


def include_frame(frame) -> bool:
    """Whether a traceback shows the frame."""
    return not is_inside(frame.f_code.co_filename)


def api_boundary(function=None, **_):
    """The function, with gradix's own frames removed from the tracebacks of its exceptions."""
    return boundary if function is None else boundary(function)
