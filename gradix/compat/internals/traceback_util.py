"""`jax._src.traceback_util`: files whose frames tracebacks leave out."""
from gradix._base.source import exclude as register_exclusion, is_inside

__all__ = ["api_boundary", "include_frame", "register_exclusion"]


def include_frame(frame) -> bool:
    """Whether a traceback shows the frame."""
    return not is_inside(frame.f_code.co_filename)


def api_boundary(function=None, **_):
    """The function itself: which frames are left out is told by their files."""
    return (lambda f: f) if function is None else function
