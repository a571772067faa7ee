"""Arrays in files of NumPy's formats."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gradix._core import dtypes
from gradix.numpy.conversion import asarray

if TYPE_CHECKING:
    from gradix._core.annotations import ArrayLike


def load(file: str | os.PathLike[str] | IO[bytes], *args: Any, **kwargs: Any) -> Any:
    """The array in a `.npy` file, or a mapping from names to the arrays in a `.npz` file.

    Args:
        file: a path, or an open file.
        *args: further arguments of `numpy.load`.
        **kwargs: further keyword arguments of `numpy.load`.

    Returns:
        An array for a `.npy` file; two bytes of unknown type are read as bfloat16, and one byte of
        unknown type is left to NumPy. The mapping for a `.npz` file is NumPy's.

    Raises:
        ValueError: the file is in neither format.

    Example:
        >>> import io, gradix.numpy as jnp
        >>> file = io.BytesIO()
        >>> jnp.save(file, jnp.arange(3))
        >>> _ = file.seek(0)
        >>> jnp.load(file)
        Array([0, 1, 2], dtype=int32)
    """
    try:
        out = np.load(file, *args, **kwargs)
    except ValueError as error:
        if "contains pickled" not in str(error):
            raise
        raise ValueError(
            f"load: {file!r} is in neither of NumPy's formats, .npy and .npz. If you trust it and it is a pickle, "
            "write pickle.load(open(file, 'rb'))."
        ) from None
    if not isinstance(out, np.ndarray):
        return out
    if out.dtype.kind == "V" and not out.dtype.names:
        if out.dtype.itemsize != 2:  # The file does not tell which of the 8-bit types it was.
            return out
        out = out.view(dtypes.bfloat16)
    return asarray(out)


def save(file: str | os.PathLike[str] | IO[bytes], arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a `.npy` file.

    Args:
        file: a path, or an open file.
        arr: an array.
        allow_pickle: as for `numpy.save`; it has no effect, since arrays hold no objects.

    Example:
        >>> import io, gradix.numpy as jnp
        >>> jnp.save(io.BytesIO(), jnp.arange(3))
    """
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


def savez(file: str | os.PathLike[str] | IO[bytes], *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a `.npz` file, under the names of the keywords.

    Args:
        file: a path, or an open file.
        *args: arrays that get the names `arr_0`, `arr_1`, and so on.
        allow_pickle: as for `numpy.savez`; it has no effect, since arrays hold no objects.
        **kwds: arrays with their names.

    Example:
        >>> import io, gradix.numpy as jnp
        >>> jnp.savez(io.BytesIO(), x=jnp.arange(3))
    """
    arrays = [np.asarray(a) for a in args]
    np.savez(file, *arrays, allow_pickle=allow_pickle, **{k: np.asarray(a) for k, a in kwds.items()})
