"""Devices that stand in a grid, arranged along the links between them."""

from collections import namedtuple

import pytest

from gradix.experimental.mesh_utils import create_device_mesh

TPU = namedtuple("TPU", "id platform device_kind process_index coords core_on_chip")


def grid(kind, size, cores=1):
    x, y, z = size
    places = [(a, b, c, k) for c in range(z) for b in range(y) for a in range(x) for k in range(cores)]
    return [TPU(i, "tpu", kind, 0, place[:3], place[3]) for i, place in enumerate(places)]


@pytest.mark.parametrize(
    ("kind", "size", "cores", "shape", "ids"),
    [
        ("TPU v3", (2, 2, 1), 2, (4, 2), [0, 1, 2, 3, 6, 7, 4, 5]),
        ("TPU v3", (4, 2, 1), 2, (2, 8), [0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11, 14, 15, 12, 13]),
        ("TPU v3", (4, 2, 1), 2, (4, 4), list(range(16))),
        ("TPU v5 lite", (4, 2, 1), 1, (8,), [0, 1, 2, 3, 7, 6, 5, 4]),
        ("TPU v5 lite", (4, 4, 1), 1, (4, 4), list(range(16))),
        ("TPU v4", (2, 2, 2), 1, (8,), [0, 4, 2, 6, 1, 5, 3, 7]),
        ("TPU v4", (2, 2, 2), 1, (4, 2), [0, 1, 4, 5, 2, 3, 6, 7]),
        ("TPU v4", (2, 4, 2), 1, (4, 4), [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]),
    ],
)
def test_the_order_of_devices(kind, size, cores, shape, ids):
    mesh = create_device_mesh(shape, grid(kind, size, cores))
    assert mesh.shape == shape
    assert [d.id for d in mesh.flat] == ids


def test_rings_follow_places_not_numbers():
    devices = grid("TPU v5 lite", (4, 2, 1))
    ids = [0, 1, 4, 5, 2, 3, 6, 7]  # two by two, as the chips of a host are numbered
    numbered = sorted([d._replace(id=i) for d, i in zip(devices, ids)])
    assert [d.id for d in create_device_mesh((8,), numbered)] == [0, 1, 4, 5, 7, 6, 3, 2]


def test_neighbours_of_a_ring_are_neighbours_in_the_grid():
    ring = list(create_device_mesh((1, 16), grid("TPU v6 lite", (4, 4, 1))).flat)
    assert sorted(d.id for d in ring) == list(range(16))
    for a, b in zip(ring, [*ring[1:], ring[0]]):
        assert sum(abs(m - n) for m, n in zip(a.coords, b.coords)) <= 2


def test_axes_of_the_grid_that_would_be_divided():
    devices = grid("TPU v4", (4, 4, 1))
    with pytest.raises(NotImplementedError, match="of size 8 of the mesh"):
        create_device_mesh((2, 8), devices)
    assert create_device_mesh((2, 8), devices, allow_split_physical_axes=True).shape == (2, 8)
