"""The pictures of the gallery: runs the examples that draw, in full, and writes docs/pictures/gallery/*.png.

Run it as `python -m docs.gallery [name ...]`; it needs the extra `demo`.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures" / "gallery"
PROGRAMS = ("digits", "group_by", "hmc", "lennard_jones", "neighbours", "order_book", "parallel_digits", "sentences")
# The page shows them about this wide; twice as many pixels keep letters sharp.
_WIDTH = 1400


def draw(name: str) -> Path:
    """Run one example, and keep its picture in as few bytes as a page needs."""
    from PIL import Image  # it comes with matplotlib

    path = FOLDER / f"{name}.png"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    program = ROOT / "examples" / f"{name}.py"
    subprocess.run([sys.executable, program, "--out", path], check=True, env=environment, cwd=ROOT)
    with Image.open(path) as picture:
        size = _WIDTH, round(picture.height * _WIDTH / picture.width)
        drawn = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    drawn.quantize(128).save(path, optimize=True)
    return path


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for made in sys.argv[1:] or PROGRAMS:
        print(draw(made))
