"""Neurons as images, and among the centers of their own clusters."""

from io import BytesIO

import numpy as np
from PIL import Image

from unlazy.report.neurons import frames, has_neurons, neuron_plot, side_names, sides, star_names
from unlazy.report.tiles import GAP, ROW, SIZE, sheet, shown_steps, tile_view
from unlazy.report.view import view_of


def with_tiles(network_record, color=3):
    """A record whose neurons end around two centers, with a image for each neuron."""
    record = network_record()
    neurons = record.arrays["neurons"]
    centers = np.zeros((len(record.steps), 4, neurons.shape[2]), np.float32)
    centers[:, 0, 0], centers[:, 1, 0] = 1, -1
    tiles = np.random.default_rng(0).integers(
        0, 256, (len(record.steps), 13, 8, 8, color), dtype=np.uint8
    )
    return network_record(arrays={"neurons": neurons, "centres": centers, "tiles": tiles})


def test_a_sheet_holds_every_tile_enlarged_and_apart(network_record):
    tiles = with_tiles(network_record).arrays["tiles"][-1]
    whole = sheet(tiles)
    assert whole.shape == (2 * SIZE + GAP, ROW * SIZE + (ROW - 1) * GAP, 3)
    np.testing.assert_array_equal(
        whole[: SIZE : SIZE // 8, SIZE + GAP : 2 * SIZE + GAP : SIZE // 8], tiles[1]
    )
    np.testing.assert_array_equal(whole[SIZE + GAP :: SIZE // 8, : SIZE : SIZE // 8], tiles[12])
    assert np.all(whole[SIZE : SIZE + GAP] == 255) and np.all(whole[SIZE + GAP :, SIZE:] == 255)


def test_few_steps_are_shown_and_each_image_says_what_it_is(network_record):
    record = with_tiles(network_record, color=1)
    assert [record.steps[place] for place in shown_steps(record)] == [0, 1, 10, 100]
    *_, last = images = tile_view("Two & more", record).images
    assert len(images) == 4
    assert last.description == "13 neurons of Two & more as images after 100 gradient steps"
    with Image.open(BytesIO(last.png)) as image:
        np.testing.assert_array_equal(np.asarray(image), sheet(record.arrays["tiles"][-1])[..., 0])


def test_neurons_are_drawn_among_centers_without_opposites(network_record):
    record = with_tiles(network_record)
    assert has_neurons(record)
    last = frames(record)[-1]
    assert list(last.stars) == [1] and last.stars[1].shape == (2, 2), (
        "places without a center are left out"
    )
    assert (
        star_names(record) == {1: "center of a cluster at the end (2)"}
        and "0.5 of a center" in side_names(record)[1]
    )
    assert sides(record).tolist() == [1] * 12
    assert len(neuron_plot(record).frames) == 5


def test_the_view_shows_them(verdict, records, network_record):
    view = view_of(verdict, records=records | {"Network": [with_tiles(network_record)]})
    (part,) = (part for part in view.parts if part.images)
    assert len(part.images) == 4 and part.title.startswith("Neurons of Network as images")
