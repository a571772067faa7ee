"""Which keys each query looks at, as objects that hold no array of all pairs."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradix._base.listing import own_names as _own_names


class Mask(abc.ABC):
    """Which keys each query looks at; `mask[rows, columns]` is a NumPy array of booleans.

    `|` and `&` join two masks of one shape.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> near = masks.CausalMask((3, 3)) & masks.LocalMask((3, 3), (1, None), offset=0)
        >>> near[:, :].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 1, 1]])
    """

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The numbers of queries and keys."""

    @abc.abstractmethod
    def __getitem__(self, idx: Any) -> np.ndarray:
        """The part of the mask at an index, as of an array."""

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)

    def __bool__(self) -> bool:
        raise NotImplementedError("a mask has no truth value. Join masks with | and &, not with `or` and `and`.")

    def _key(self) -> tuple:
        return tuple([(k, v.tobytes() if isinstance(v, np.ndarray) else v) for k, v in sorted(vars(self).items())])

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and self.shape == other.shape and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self.shape, self._key()))


class _Joined(Mask):
    """Two masks of one shape."""

    def __init__(self, left: Mask, right: Mask):
        if left.shape != right.shape:
            raise ValueError(
                f"masks of shapes {left.shape} and {right.shape} cannot be joined. Make both for the same numbers of "
                "queries and keys."
            )
        self.left, self.right = left, right

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of queries and keys."""
        return self.left.shape


class LogicalOr(_Joined):
    """What either of two masks shows.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> (masks.LocalMask((1, 4), (0, 0), 0) | masks.LocalMask((1, 4), (0, 0), 2))[:, :].astype(int)
        array([[1, 0, 1, 0]])
    """

    def __getitem__(self, idx: Any) -> np.ndarray:
        return self.left[idx] | self.right[idx]


class LogicalAnd(_Joined):
    """What both of two masks show.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> (masks.CausalMask((1, 4), 2) & masks.LocalMask((1, 4), (0, None), 1))[:, :].astype(int)
        array([[0, 1, 1, 0]])
    """

    def __getitem__(self, idx: Any) -> np.ndarray:
        return self.left[idx] & self.right[idx]


class _Computed(Mask):
    """A mask that is a function of the numbers of queries and keys."""

    def __init__(self, shape: tuple[int, int], **parameters: Any):
        if len(shape) != 2:
            raise ValueError(f"the shape of a mask has the numbers of queries and keys, got {shape}.")
        self._shape = tuple(shape)
        self.__dict__.update(parameters)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of queries and keys."""
        return self._shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        rows, columns = idx
        n, m = self._shape
        queries, keys = np.arange(n)[rows], np.arange(m)[columns]
        return self._seen(queries[..., None], keys[None, ...])

    def _seen(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class FullMask(_Computed):
    """Every query looks at every key.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.FullMask((2, 3))[:, :].all()
        np.True_
    """

    def __init__(self, _shape: tuple[int, int]):
        super().__init__(_shape)

    def _seen(self, queries, keys):
        return np.ones(np.broadcast_shapes(queries.shape, keys.shape), bool)


class CausalMask(_Computed):
    """Queries look at the keys up to their own place plus `offset`.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.CausalMask((2, 3))[:, :].astype(int)
        array([[1, 0, 0],
               [1, 1, 0]])
    """

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1):
        super().__init__(shape, offset=offset)

    def _seen(self, queries, keys):
        return queries + self.__dict__["offset"] >= keys


class ChunkedCausalMask(_Computed):
    """Queries look at the keys up to their own place in chunks of `chunk_size` of their own.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.ChunkedCausalMask((3, 3), 2)[:, :].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [0, 0, 1]])
    """

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1):
        if chunk_size < 1:
            raise ValueError(f"chunk_size must be positive, got {chunk_size}.")
        super().__init__(shape, chunk_size=chunk_size)

    def _seen(self, queries, keys):
        size = self.__dict__["chunk_size"]
        return (queries // size == keys // size) & (queries >= keys)


class LocalMask(_Computed):
    """Queries look at so many keys before and after their own place plus `offset`; None is no limit.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.LocalMask((2, 4), (0, 1), offset=1)[:, :].astype(int)
        array([[0, 1, 1, 0],
               [0, 0, 1, 1]])
    """

    def __init__(
        self, shape: tuple[int, int], window_size: tuple[int | None, int | None], offset: int, shard_count: int = 1
    ):
        super().__init__(shape, window_size=tuple(window_size), offset=offset)

    def _seen(self, queries, keys):
        (left, right), place = self.__dict__["window_size"], queries + self.__dict__["offset"]
        seen = np.ones(np.broadcast_shapes(queries.shape, keys.shape), bool)
        if left is not None:
            seen &= place - left <= keys
        if right is not None:
            seen &= keys <= place + right
        return seen


class NumpyMask(Mask):
    """A mask given as an array of booleans.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> import numpy as np
        >>> masks.NumpyMask(np.eye(2, dtype=bool)).shape
        (2, 2)
    """

    def __init__(self, array: np.ndarray):
        if array.ndim != 2 or array.dtype != np.bool_:
            raise ValueError(
                f"NumpyMask takes booleans of shape (queries, keys), got {array.dtype} of shape {array.shape}."
            )
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of queries and keys."""
        return self.array.shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        return self.array[idx]


class MultiHeadMask(Mask):
    """A mask for each head; all have one shape.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.MultiHeadMask([masks.CausalMask((4, 4)), masks.FullMask((4, 4))]).shape
        (2, 4, 4)
    """

    def __init__(self, masks: Sequence[Mask]):
        if not masks or any(m.shape != masks[0].shape for m in masks):
            raise ValueError(f"MultiHeadMask takes masks of one shape, got shapes {[m.shape for m in masks]}.")
        self.masks = tuple(masks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of heads, queries and keys."""
        return len(self.masks), *self.masks[0].shape

    def __getitem__(self, idx: Any) -> np.ndarray:
        heads, *rest = idx
        if isinstance(heads, (int, np.integer)):
            return self.masks[heads][tuple(rest)]
        return np.stack([m[tuple(rest)] for m in self.masks[heads]])


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """The array of a `CausalMask`.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_causal_mask((1, 3), 1).astype(int)
        array([[1, 1, 0]])
    """
    return CausalMask(shape, offset)[:, :]


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """The array of a `ChunkedCausalMask`.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_chunk_attention_mask((2, 2), 1).astype(int)
        array([[1, 0],
               [0, 1]])
    """
    return ChunkedCausalMask(shape, chunk_size)[:, :]


def make_local_attention_mask(
    shape: tuple[int, int], window_size: tuple[int | None, int | None], *, offset: int = 0
) -> np.ndarray:
    """The array of a `LocalMask`.

    Example:
        >>> from gradix.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
        >>> masks.make_local_attention_mask((1, 3), (None, 1)).astype(int)
        array([[1, 1, 0]])
    """
    return LocalMask(shape, window_size, offset)[:, :]


__dir__ = _own_names(__name__)
