"""Alters tables of kept files field by field, as one who forges would, and reads them in 3 GiB.

python -m tests.export.mutates SEED COUNT
"""

import random
import resource
import sys

from gradix import export
from gradix.export import wire
from tests.export.kept_files import FOLDER

NUMBERS = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 32767, 65535, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
TEXTS = [
    b"",
    b"n",
    b"n*m",
    b"n^99",
    b"max(n, 1)",
    b"cpu",
    b"tpu",
    b"\xff",
    b"9" * 19,
    b"9" * 25,
    b"-1",
    b"floordiv(n, 0)",
    b"key<fry>",
    "²".encode(),
    b"\0" * 9,
]


def altered(blob: bytes, rng: random.Random) -> bytes:
    """The file with fields of its tables altered, found by following its references."""
    b = bytearray(blob)
    number = lambda at, n=4: int.from_bytes(b[at : at + n], "little")  # noqa: E731
    tables, vectors = [], []

    def walk(place: int, depth: int) -> None:
        tables.append(place)
        fields = place - int.from_bytes(b[place : place + 4], "little", signed=True)
        for slot in range((number(fields, 2) - 4) // 2):
            offset = number(fields + 4 + 2 * slot, 2)
            at = place + offset
            target = at + number(at)
            if not offset or depth > 8 or not at < target < len(b) - 8:
                continue
            vectors.append((at, target))
            count = number(target)
            for i in range(min(count, 50)):
                element = target + 4 + 4 * i
                inner = element + number(element)
                if not element < inner < len(b) - 8:
                    break
                vectors.append((element, inner))
                known = inner - int.from_bytes(b[inner : inner + 4], "little", signed=True)
                if 0 <= known < len(b) - 4 and 4 <= number(known, 2) < 200 and number(known, 2) % 2 == 0:
                    walk(inner, depth + 1)
            known = target - int.from_bytes(b[target : target + 4], "little", signed=True)
            if 0 <= known < len(b) - 4 and 4 <= number(known, 2) < 200 and number(known, 2) % 2 == 0:
                walk(target, depth + 1)

    walk(number(0), 0)
    for _ in range(rng.choice([1, 1, 2, 4])):
        kind = rng.random()
        if kind < 0.25:  # a number, or a reference, of a table
            place = rng.choice(tables)
            fields = place - int.from_bytes(b[place : place + 4], "little", signed=True)
            slot = rng.randrange(max((number(fields, 2) - 4) // 2, 1))
            at = place + number(fields + 4 + 2 * slot, 2)
            b[at : at + 4] = (rng.choice(NUMBERS) % (1 << 32)).to_bytes(4, "little")
        elif kind < 0.4:  # a slot that moves, or vanishes
            place = rng.choice(tables)
            fields = place - int.from_bytes(b[place : place + 4], "little", signed=True)
            slot = rng.randrange(max((number(fields, 2) - 4) // 2, 1))
            b[fields + 4 + 2 * slot : fields + 6 + 2 * slot] = rng.choice([0, 4, 8, rng.randrange(1 << 16)]).to_bytes(
                2, "little"
            )
        elif kind < 0.65:  # a reference to something else of the file
            (at, _), (_, other) = rng.choice(vectors), rng.choice(vectors)
            b[at : at + 4] = ((other - at) % (1 << 32)).to_bytes(4, "little")
        elif kind < 0.8:  # the length of a vector or string
            _, target = rng.choice(vectors)
            b[target : target + 4] = (rng.choice([*NUMBERS, number(target) + 1, max(number(target) - 1, 0)])).to_bytes(
                4, "little"
            )
        elif kind < 0.95:  # the content of a string
            _, target = rng.choice(vectors)
            text = rng.choice(TEXTS)[: number(target)]
            b[target + 4 : target + 4 + len(text)] = text
        else:  # the list of fields of a table
            place = rng.choice(tables)
            b[place : place + 4] = rng.choice([0, 4, len(b), rng.randrange(1 << 32)]).to_bytes(4, "little")
    return bytes(b[: len(blob)])


def main(seed: int, count: int) -> None:
    rng, refused = random.Random(seed), 0
    blobs = [f.read_bytes() for f in sorted(FOLDER.glob("*/*.bin"))]
    for blob in blobs:
        export.deserialize(blob)
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    for i in range(count):
        blob = altered(blobs[i % len(blobs)], rng)
        try:
            e = export.deserialize(blob)
            wire.Table.root(blob)
            assert e.serialize() and str(e.in_avals) and e.nr_devices >= 1 and e.platforms
        except ValueError:
            refused += 1
    print(f"refused {refused} of {count}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
