"""Two values divided alike."""

from gradix._api.constraints import shard_alike as shard_alike

__all__ = ["shard_alike"]
