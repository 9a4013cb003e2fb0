"""Neurons as pictures, and among the centres of their own clusters."""

import base64
import re
from io import BytesIO

import numpy as np
from PIL import Image

from unlazy.report.charts import neuron_chart
from unlazy.report.neurons import frames, has_neurons, side_names, sides, star_names
from unlazy.report.page import page
from unlazy.report.tiles import GAP, ROW, SIZE, sheet, shown_steps, tiles_html


def with_tiles(network_record, colour=3):
    """A record whose neurons end around two centres, with a picture for each neuron."""
    record = network_record()
    neurons = record.arrays["neurons"]
    centres = np.zeros((len(record.steps), 4, neurons.shape[2]), np.float32)
    centres[:, 0, 0], centres[:, 1, 0] = 1, -1
    tiles = np.random.default_rng(0).integers(
        0, 256, (len(record.steps), 13, 8, 8, colour), dtype=np.uint8
    )
    return network_record(arrays={"neurons": neurons, "centres": centres, "tiles": tiles})


def test_a_sheet_holds_every_tile_enlarged_and_apart(network_record):
    tiles = with_tiles(network_record).arrays["tiles"][-1]
    whole = sheet(tiles)
    assert whole.shape == (2 * SIZE + GAP, ROW * SIZE + (ROW - 1) * GAP, 3)
    np.testing.assert_array_equal(
        whole[: SIZE : SIZE // 8, SIZE + GAP : 2 * SIZE + GAP : SIZE // 8], tiles[1]
    )
    np.testing.assert_array_equal(whole[SIZE + GAP :: SIZE // 8, : SIZE : SIZE // 8], tiles[12])
    assert np.all(whole[SIZE : SIZE + GAP] == 255) and np.all(whole[SIZE + GAP :, SIZE:] == 255)


def test_few_steps_are_shown_and_each_picture_says_what_it_is(network_record):
    record = with_tiles(network_record, colour=1)
    assert [record.steps[place] for place in shown_steps(record)] == [0, 1, 10, 100]
    html = tiles_html("Two & more", record)
    pictures = re.findall(r'alt="([^"]*)" src="data:image/png;base64,([^"]*)"', html)
    assert (
        len(pictures) == 4
        and pictures[-1][0] == "13 neurons of Two &amp; more as pictures after 100 gradient steps"
    )
    with Image.open(BytesIO(base64.b64decode(pictures[-1][1]))) as picture:
        np.testing.assert_array_equal(
            np.asarray(picture), sheet(record.arrays["tiles"][-1])[..., 0]
        )


def test_neurons_are_drawn_among_centres_without_opposites(network_record):
    record = with_tiles(network_record)
    assert has_neurons(record)
    last = frames(record)[-1]
    assert list(last.stars) == [1] and last.stars[1].shape == (2, 2), (
        "places without a centre are left out"
    )
    assert (
        star_names(record) == {1: "centre of a cluster at the end (2)"}
        and "0.5 of a centre" in side_names(record)[1]
    )
    assert sides(record).tolist() == [1] * 12
    assert len(neuron_chart(record)["frames"]) == 5


def test_the_page_shows_them(verdict, records, network_record):
    text = page([(verdict, records | {"Network": [with_tiles(network_record)]})])
    assert text.count('class="tiles"') == 4 and "Neurons of Network as pictures" in text
