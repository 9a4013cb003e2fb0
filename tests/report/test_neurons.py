"""Neurons in the plane."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unlazy.core.errors import BadInput
from unlazy.report.figures import draw
from unlazy.report.neurons import (
    embed,
    frames,
    nearest_star,
    neuron_plot,
    side_names,
    sides,
    star_names,
    unit_rows,
)


def in_a_plane(angles, d=7, seed=3):
    """Unit vectors at the given angles in a random plane of d dimensions, and the direction at
    angle zero.
    """
    basis, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, 2)))
    angles = np.asarray(angles, float)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) @ basis.T, basis[:, :1].T


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(-3.1, 3.1), min_size=2, max_size=9), st.integers(0, 1000))
def test_points_on_a_circle_keep_their_angles(angles, seed):
    neurons, direction = in_a_plane(angles, seed=seed)
    points, stars = embed(neurons, direction)
    found = np.arctan2(points[:, 1], points[:, 0])
    # A plane may be looked at from both sides.
    nearest = min(
        np.abs(np.exp(1j * found) - np.exp(1j * side * np.asarray(angles))).max()
        for side in (1, -1)
    )
    assert nearest < 1e-5
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(stars, [[1, 0], [-1, 0]], atol=1e-6)


def test_planar_distances_are_reproduced():
    neurons, direction = in_a_plane([0.3, 1.2, -2.0, 2.9, -0.4])
    points, _ = embed(neurons, direction)
    np.testing.assert_allclose(
        np.linalg.norm(points[:, None] - points, axis=-1),
        np.linalg.norm(neurons[:, None] - neurons, axis=-1),
        atol=1e-6,
    )


def test_length_of_weights_does_not_matter():
    neurons, direction = in_a_plane([0.3, 1.2, -2.0])
    for factor in (1e-9, 1e-200, 5e-310, 1e200):
        np.testing.assert_allclose(
            embed(neurons * factor, direction)[0], embed(neurons, direction)[0], atol=1e-6
        )


@pytest.mark.parametrize("seed", range(5))
def test_the_plus_star_lies_on_the_positive_x_axis(seed):
    draw = np.random.default_rng(seed)
    _, stars = embed(draw.normal(size=(30, 40)), draw.normal(size=(1, 40)))
    assert stars[0, 0] > 0
    assert stars[0, 1] == 0
    np.testing.assert_allclose(stars[1], -stars[0], atol=1e-9)


def test_several_directions_give_two_stars_each():
    points, stars = embed(np.eye(5)[:3], np.eye(5)[3:])
    assert points.shape == (3, 2)
    np.testing.assert_allclose(stars[:2], -stars[2:], atol=1e-9)


def test_the_same_weights_give_the_same_plot_whatever_their_sign_of_axes():
    """eigh chooses signs at will; a rotation of all weights changes them, but not the plot."""
    draw = np.random.default_rng(1)
    neurons, direction = draw.normal(size=(20, 6)), draw.normal(size=(1, 6))
    turn, _ = np.linalg.qr(draw.normal(size=(6, 6)))
    np.testing.assert_allclose(
        embed(neurons, direction)[0], embed(neurons @ turn, direction @ turn)[0], atol=1e-8
    )


def test_a_frame_is_reflected_to_resemble_the_one_before():
    neurons, direction = in_a_plane([0.3, 1.2, 2.0])
    up, _ = embed(neurons, direction)
    down, _ = embed(neurons, direction, up * (1, -1))
    np.testing.assert_allclose(down, up * (1, -1), atol=1e-9)


def test_a_weight_of_zero_lies_at_the_origin():
    neurons, direction = in_a_plane([0.3, 0.5, 0.7])
    points, _ = embed(np.concatenate([neurons, np.zeros((1, 7))]), direction)
    np.testing.assert_allclose(points[-1], 0, atol=1e-6)
    assert np.isfinite(points).all()


def test_weights_all_zero_leave_the_stars():
    points, stars = embed(np.zeros((3, 4)), np.eye(4)[:1])
    np.testing.assert_allclose(points, 0, atol=1e-9)
    np.testing.assert_allclose(stars, [[1, 0], [-1, 0]], atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_neurons_that_are_not_finite_are_left_out(bad):
    neurons, direction = in_a_plane([0.3, 1.2, -2.0, 2.9])
    spoiled = neurons.copy()
    spoiled[1, 0] = bad
    points, stars = embed(spoiled, direction)
    assert np.isnan(points[1]).all()
    rest, _ = embed(np.delete(neurons, 1, axis=0), direction)
    np.testing.assert_allclose(np.delete(points, 1, axis=0), rest, atol=1e-9)
    assert np.isfinite(stars).all()


def test_no_finite_neuron_at_all():
    points, stars = embed(np.full((3, 4), np.nan), np.eye(4)[:1])
    assert np.isnan(points).all()
    np.testing.assert_allclose(stars, [[1, 0], [-1, 0]], atol=1e-9)


def test_directions_must_be_finite():
    with pytest.raises(BadInput, match="finite"):
        embed(np.ones((2, 3)), np.full((1, 3), np.nan))


def test_nearest_star():
    neurons = np.array(
        [[1, 5, 0], [-1e-9, 0, 0], [0, 0, 0], [0, 3, 0], [np.nan, 1, 1], [np.inf, 0, 0]]
    )
    assert nearest_star(neurons, np.array([[2.0, 0, 0]])).tolist() == [1, -1, 0, 0, 0, 0]
    assert nearest_star(np.array([[0.1, -1.0]]), np.eye(2)).tolist() == [-1]


def test_unit_rows_keep_zero_and_mark_non_finite_rows():
    rows = unit_rows(np.array([[3.0, 4.0], [0, 0], [np.inf, 1]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [np.nan, np.nan]])


def test_frames_of_a_record(network_record):
    record = network_record()
    found = frames(record)
    assert [frame.step for frame in found] == list(record.steps)
    assert found[2].caption == "max cosine 0.990"
    assert sides(record).tolist() == [1, -1] * 6
    # After two steps, every neuron lies next to its star.
    assert (np.sign(found[2].points[:, 0]) == sides(record)).all()


def test_many_directions_have_one_star_each_and_neurons_are_told_apart_by_where_they_end(
    network_record,
):
    arrays = dict(network_record().arrays)
    steps, neurons, d = arrays["neurons"].shape
    arrays["directions"] = np.broadcast_to(np.eye(d)[:3], (steps, 3, d))
    arrays["neurons"] = np.full((steps, neurons, d), 0.5)
    arrays["neurons"][-1, :4] = 2 * np.eye(d)[1]
    record = network_record(arrays=arrays)
    assert sides(record).tolist() == [1] * 4 + [0] * (neurons - 4)
    assert all(
        {sign: len(stars) for sign, stars in frame.stars.items()} == {1: 3}
        for frame in frames(record)
    )
    assert "3" in star_names(record)[1] and set(side_names(record)) == {0, 1}
    assert neuron_plot(record).frames[-1].series[0].kind == "opposite"


def test_frames_of_a_diverged_record(network_record):
    arrays = {name: array.copy() for name, array in network_record().arrays.items()}
    arrays["neurons"][3, 0] = np.inf
    arrays["neurons"][4] = np.nan
    found = frames(
        network_record(status="diverged", arrays=arrays, cosine=(0.2, 0.9, 0.9, 0.9, np.nan))
    )
    assert [frame.left_out for frame in found] == [0, 0, 0, 1, 12]
    assert "1 of 12 neurons not finite" in found[3].caption
    assert "no finite cosine" in found[4].caption


def test_sides_of_a_record_without_step_two(network_record):
    record = network_record()
    arrays = {name: array[3:] for name, array in record.arrays.items()}
    late = network_record(steps=(10, 100), arrays=arrays, test_accuracy=(1, 2), cosine=(1, 1))
    assert sides(late).tolist() == [1, -1] * 6


def test_the_plot_has_a_frame_per_step_and_panels_of_the_first_three_and_the_last(network_record):
    plot = neuron_plot(network_record())
    assert [frame.title for frame in plot.frames] == [
        "initialization",
        *(f"step {step}" for step in (1, 2, 10, 100)),
    ]
    star, opposite, *_ = plot.frames[2].series
    assert star.x[0] == pytest.approx(1, abs=0.01) and opposite.x[0] == pytest.approx(-1, abs=0.01)
    figure = draw(plot)
    assert [axes.get_title() for axes in figure.axes] == [
        "initialization\nmax cosine 0.200",
        "step 1\nmax cosine 0.990",
        "step 2\nmax cosine 0.990",
        "step 100\nmax cosine 0.998",
    ]
    assert "neuron nearest +u after two steps (6)" in [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_a_record_without_neurons_is_refused(network_record):
    with pytest.raises(BadInput, match="no neurons"):
        neuron_plot(network_record(arrays={}))
