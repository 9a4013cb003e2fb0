"""First-layer weights as pictures: where inputs are images, so are neurons."""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO

import numpy as np

from unlazy.lab.trials import Record

#: Pixels to which a tile is enlarged at least, those between tiles, and tiles in a row.
SIZE, GAP, ROW = 64, 4, 12
#: At most so many steps are shown: the first, the last, and those between.
STEPS = 4


def has_tiles(record: Record) -> bool:
    """Whether a record holds pictures of its neurons."""
    return "tiles" in record.arrays


def shown_steps(record: Record) -> list[int]:
    """Places of the steps that are shown, evenly among those recorded."""
    count = min(STEPS, len(record.steps))
    return sorted({round(place) for place in np.linspace(0, len(record.steps) - 1, count)})


def sheet(tiles: np.ndarray) -> np.ndarray:
    """All tiles of a step on one sheet of bytes, row by row, in grey or in colour.

    A weight of zero is the middle grey.
    """
    count, height, width, channels = tiles.shape
    times = max(1, SIZE // max(height, width))
    large = np.repeat(np.repeat(tiles, times, axis=1), times, axis=2)
    rows, columns = -(-count // ROW), min(count, ROW)
    tall, wide = height * times + GAP, width * times + GAP
    whole = np.full((rows * tall - GAP, columns * wide - GAP, channels), 255, np.uint8)
    for place, tile in enumerate(large):
        top, left = tall * (place // ROW), wide * (place % ROW)
        whole[top : top + height * times, left : left + width * times] = tile
    return whole


def png(pixels: np.ndarray) -> bytes:
    """Bytes of a picture as a PNG file."""
    from PIL import Image

    out = BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(
        out, "PNG", optimize=True
    )
    return out.getvalue()


def tiles_html(arm: str, record: Record) -> str:
    """The sheets of a few steps, each with its step."""
    title = f"<h3>Neurons of {escape(arm)} as pictures, seed {record.seed}</h3>"
    caption = (
        '<p class="soft">First-layer weights, each neuron a tile, scaled by its largest weight; '
        "grey is zero. Neurons of different "
        "clusters take turns, the largest cluster first; loose neurons come last.</p>"
    )
    parts = []
    for place in shown_steps(record):
        step, tiles = record.steps[place], record.arrays["tiles"][place]
        code = base64.b64encode(png(sheet(tiles))).decode()
        told = f"{len(tiles)} neurons of {arm} as pictures after {step} gradient steps"
        picture = f'<img class="tiles" alt="{escape(told)}" src="data:image/png;base64,{code}">'
        parts.append(f"<figure>{picture}<figcaption>step {step}</figcaption></figure>")
    return title + caption + "".join(parts)
