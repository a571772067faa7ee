"""`jax._src.traceback_util`: files whose frames tracebacks leave out."""

from gradix._base.source import exclude as register_exclusion, include, is_inside

__all__ = ["UnfilteredStackTrace", "api_boundary", "include_frame", "register_exclusion"]


class UnfilteredStackTrace(Exception):
    """The whole traceback, which JAX may hang on an error as its cause; ours are filtered as they are printed."""


class _Excluded(list):
    """Files that a library leaves out, and takes in again, by changing the list."""

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
    """The function itself: frames are left out by their files."""
    return (lambda f: f) if function is None else function
