"""`shard_alike`, which gives two arrays the same sharding."""

from gradix._api.constraints import shard_alike as shard_alike

__all__ = ["shard_alike"]
