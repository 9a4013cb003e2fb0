"""First-layer weights as images, if inputs are images."""

from __future__ import annotations

from io import BytesIO

import numpy as np

from unlazy.lab.trials import Record
from unlazy.report.view import View, ViewImage, slug

#: Minimum pixels per tile, pixels between tiles, tiles per row.
SIZE, GAP, ROW = 64, 4, 12
#: Maximum number of steps shown.
STEPS = 4


def has_tiles(record: Record) -> bool:
    """Return whether a record has images of its neurons."""
    return "tiles" in record.arrays


def shown_steps(record: Record) -> list[int]:
    """Return indices of the shown steps, evenly spaced among those recorded."""
    count = min(STEPS, len(record.steps))
    return sorted({round(place) for place in np.linspace(0, len(record.steps) - 1, count)})


def sheet(tiles: np.ndarray) -> np.ndarray:
    """Return all tiles of a step in one image, row by row; zero weights are middle gray."""
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
    """Return an image as PNG."""
    from PIL import Image

    out = BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(
        out, "PNG", optimize=True
    )
    return out.getvalue()


def tile_view(arm: str, record: Record) -> View:
    """Return the images of a few steps."""
    images = []
    for place in shown_steps(record):
        step, tiles = record.steps[place], record.arrays["tiles"][place]
        description = f"{len(tiles)} neurons of {arm} as images after {step} gradient steps"
        images.append(ViewImage(png(sheet(tiles)), description, f"step {step}"))
    return View(
        f"Neurons of {arm} as images, seed {record.seed}",
        context="First-layer weights, each neuron a tile, scaled by its largest weight; gray is "
        "zero. Neurons of different clusters take turns, the largest cluster first; neurons in no "
        "cluster come last.",
        images=tuple(images),
        name=f"tiles-{slug(arm)}",
    )
