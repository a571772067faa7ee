"""`jax._src.traceback_util`: files whose frames tracebacks leave out."""

from gradix._base.source import exclude as register_exclusion, include, is_inside

__all__ = ["UnfilteredStackTrace", "api_boundary", "include_frame", "register_exclusion"]


class UnfilteredStackTrace(Exception):
    """The class of the causes that hold whole tracebacks in JAX; gradix raises none.

    gradix filters tracebacks when they are printed.
    """


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
    """The function itself, or a decorator that returns it, because frames are left out by file."""
    return (lambda f: f) if function is None else function
