"""Maps over axes and devices: vmap, pmap, shard_map, chunks, custom_vmap, collectives."""
