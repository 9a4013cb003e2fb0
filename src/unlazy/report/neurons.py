"""Plot of neurons and hidden directions: cosine similarities in the plane, by classical
multidimensional scaling.

Each hidden direction u gives two stars, +u and −u. If there are many directions, such as the
centers of a mixture, each gives one. Stars and neurons of one step are scaled together, so that
distances in the plane approximate distances between unit weight vectors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from unlazy.core.errors import require
from unlazy.lab.trials import Record
from unlazy.report.view import ViewFrame, ViewPlot, ViewSeries

#: A projected star shorter than this does not define a rotation.
SHORT = 1e-6
#: The step at which neurons are assigned to stars, as in shi2022.
SORTING_STEP = 2
#: With more directions, opposites are not drawn, and colors show whether a neuron ends near one.
MAX_PAIRS = 2
#: The smallest cosine of a neuron near a direction.
NEAR = 0.9
#: The smallest cosine of a neuron in a cluster that was found from the weights.
LINKED = 0.5


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return rows divided by their norm; zero rows stay zero, non-finite rows become NaN."""
    rows = np.array(vectors, float)
    rows[~np.isfinite(rows).all(axis=1)] = np.nan
    # Scaled first: squares of tiny weights underflow, squares of huge ones overflow.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = np.divide(rows, largest, out=np.zeros_like(rows), where=largest != 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    result: np.ndarray = np.divide(rows, length, out=np.zeros_like(rows), where=length != 0)
    return result


def scale_to_plane(similarity: np.ndarray) -> np.ndarray:
    """Return one point of the plane per row of a matrix of inner products, by classical
    multidimensional scaling.

    scikit-learn has `ClassicalMDS` only in releases later than the oldest supported one. Its `MDS`
    (SMACOF) has a random initialization, so that frames of one run could not be compared.
    """
    count = len(similarity)
    centered = (
        similarity - similarity.mean(axis=0) - similarity.mean(axis=1)[:, None] + similarity.mean()
    )
    top = min(2, count)
    values, vectors = scipy.linalg.eigh(centered, subset_by_index=(count - top, count - 1))
    points = np.zeros((count, 2))
    # Rounding makes eigenvalues that should be zero slightly negative.
    points[:, :top] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1]
    return points


def embed(
    neurons: np.ndarray, directions: np.ndarray, like: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the neurons `(count, 2)` and of the stars `(2 r, 2)`: the r directions,
    then their opposites.

    Zero weights are at the origin, the first star is on the positive x axis. The reflection at that
    axis is chosen by agreement with the points `like` (those of the previous step), or else by the
    neurons themselves. The point of a non-finite neuron is NaN.
    """
    units, ways = unit_rows(neurons), unit_rows(directions)
    require(
        bool(np.isfinite(ways).all() and len(ways)),
        "A plot of neurons needs at least one hidden direction, and all must be finite.",
    )
    finite = np.isfinite(units).all(axis=1)
    rows = np.concatenate([ways, -ways, units[finite]])
    plane = scale_to_plane(rows @ rows.T)
    # The mean of opposite stars is the projection of the zero vector.
    plane = plane - plane[: 2 * len(ways)].mean(axis=0)
    plane = _turn(plane)
    points = np.full((len(units), 2), np.nan)
    points[finite] = plane[2 * len(ways) :]
    if _upside_down(points, like):
        plane, points = plane * (1, -1), points * (1, -1)
    return points, plane[: 2 * len(ways)]


def _turn(plane: np.ndarray) -> np.ndarray:
    """Rotate the plane so that the first point is on the positive x axis."""
    x, y = plane[0]
    length = np.hypot(x, y)
    if length < SHORT:
        return plane
    turned: np.ndarray = plane @ np.array([[x, -y], [y, x]]) / length
    turned[0] = length, 0.0
    return turned


def _upside_down(points: np.ndarray, like: np.ndarray | None) -> bool:
    """Return whether to reflect the points: to agree with `like`, or for positive skewness."""
    y = points[:, 1]
    if like is not None and np.isfinite(like).all(axis=1).any():
        agreement = float(np.nansum(y * like[:, 1]))
        if agreement != 0:
            return agreement < 0
    y = y[np.isfinite(y)]
    skew = float(np.sum(y**3))
    # Symmetric data have no skew except by rounding: the first neuron off the axis decides.
    if abs(skew) > 1e-9 * float(np.sum(np.abs(y) ** 3)):
        return skew < 0
    off = y[np.abs(y) > SHORT]
    return bool(len(off) and off[0] < 0)


def nearest_star(neurons: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return +1 for neurons whose nearest star is a direction, −1 for an opposite, and 0 if the
    weight is zero, orthogonal or not finite.
    """
    cosines = np.nan_to_num(unit_rows(neurons)) @ unit_rows(directions).T
    best = np.take_along_axis(cosines, np.abs(cosines).argmax(axis=1)[:, None], axis=1)[:, 0]
    result: np.ndarray = np.sign(best).astype(int)
    return result


@dataclasses.dataclass(frozen=True)
class Frame:
    """Neurons of one recorded step in the plane.

    `cosine` is the maximum over neurons; `left_out` is the number of non-finite neurons.
    """

    step: int
    points: np.ndarray
    stars: dict[int, np.ndarray]  # directions under +1, their opposites under −1
    cosine: float
    left_out: int

    @property
    def caption(self) -> str:
        """The maximum cosine, and the number of non-finite neurons."""
        text = f"max cosine {self.cosine:.3f}" if np.isfinite(self.cosine) else "no finite cosine"
        return text + (
            f"; {self.left_out} of {len(self.points)} neurons not finite" if self.left_out else ""
        )


def has_neurons(record: Record) -> bool:
    """Return whether a record has the arrays of a plot of neurons."""
    return {"neurons", "directions"} <= record.arrays.keys() or has_centers(record)


def has_centers(record: Record) -> bool:
    """Return whether stars are the centers of final clusters, because no direction is known."""
    return {"neurons", "centres"} <= record.arrays.keys() and bool(
        np.any(record.arrays["centres"][-1])
    )


def _directions(record: Record, place: int) -> np.ndarray:
    """Return the stars of a step: hidden directions, or the centers of final clusters."""
    if "directions" in record.arrays:
        directions: np.ndarray = record.arrays["directions"][place]
        return directions
    centers = record.arrays["centres"]
    used: np.ndarray = centers[place][np.any(centers[-1] != 0, axis=1)]
    return used


def frames(record: Record) -> list[Frame]:
    """Return all recorded steps in the plane, each reflected to resemble the previous one."""
    found: list[Frame] = []
    for place, step in enumerate(record.steps):
        neurons, directions = record.arrays["neurons"][place], _directions(record, place)
        points, stars = embed(neurons, directions, found[-1].points if found else None)
        if "cosine" in record.measurements:
            cosine = record.measurements["cosine"][place]
        else:
            cosine = float(np.max(np.nan_to_num(unit_rows(neurons)) @ unit_rows(directions).T))
        count = len(directions)
        shown = {1: stars[:count]} if _is_crowded(record) else {1: stars[:count], -1: stars[count:]}
        found.append(Frame(step, points, shown, cosine, int(np.isnan(points[:, 0]).sum())))
    return found


def _count(record: Record) -> int:
    return len(_directions(record, -1))


def _is_crowded(record: Record) -> bool:
    """Return whether opposites are omitted: there are many directions, or stars are centers."""
    return has_centers(record) or _count(record) > MAX_PAIRS


def star_names(record: Record) -> dict[int, str]:
    """Return the legend of the stars."""
    if has_centers(record):
        return {1: f"center of a cluster at the end ({_count(record)})"}
    few = {1: "hidden direction +u", -1: "its opposite −u"}
    return few if _count(record) <= MAX_PAIRS else {1: f"hidden direction ({_count(record)})"}


def side_names(record: Record) -> dict[int, str]:
    """Return the legend of the neurons by side."""
    if has_centers(record):
        return {1: f"neuron that ends within cosine {LINKED:g} of a center", 0: "other neuron"}
    if _count(record) > MAX_PAIRS:
        return {1: f"neuron that ends within cosine {NEAR:g} of one", 0: "other neuron"}
    return {
        1: "neuron nearest +u after two steps",
        -1: "neuron nearest −u after two steps",
        0: "neuron near neither",
    }


def sides(record: Record) -> np.ndarray:
    """Return the side of each neuron, which sets its color at every step.

    With few directions, it is `nearest_star` after two steps (or the last step, if earlier). With
    many, it is +1 for neurons near a direction at the last step.
    """
    if _is_crowded(record):
        cosines = (
            np.nan_to_num(unit_rows(record.arrays["neurons"][-1]))
            @ unit_rows(_directions(record, -1)).T
        )
        result: np.ndarray = (
            cosines.max(axis=1) >= (LINKED if has_centers(record) else NEAR)
        ).astype(int)
        return result
    place = max(
        i for i, step in enumerate(record.steps) if step <= max(SORTING_STEP, record.steps[0])
    )
    return nearest_star(record.arrays["neurons"][place], record.arrays["directions"][place])


def neuron_plot(record: Record, title: str = "Neurons", name: str = "") -> ViewPlot:
    """Return the neurons of a record at all recorded steps, as in Figure 6 of shi2022; in print,
    steps 0, 1, 2 and the last have panels.
    """
    require(
        has_neurons(record),
        "This record has no neurons: its trial had no Silhouette probe, or it was read without "
        "arrays.",
    )
    side, shown = sides(record), frames(record)
    printed = {*record.steps[:3], record.steps[-1]}
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = _points("circle", np.stack([np.cos(angle), np.sin(angle)], axis=1), "guide")
    moving = [
        ViewFrame(
            "initialization" if frame.step == 0 else f"step {frame.step}",
            frame.caption,
            tuple(_frame_series(record, frame, side)),
            frame.step in printed,
        )
        for frame in shown
    ]
    return ViewPlot(
        title,
        "",
        "",
        (dataclasses.replace(circle, mark="line", legend=False),),
        frames=tuple(moving),
        bare=True,
        limits=(-1.2, 1.2),
        caption="Unit weight vectors, projected at each step onto the two leading principal axes "
        "of their Gram matrix (classical multidimensional scaling). A point near the circle lies "
        "almost in this plane. Each step has its own plane, so a star, too, can lie inside the "
        "circle.",
        name=f"neurons-{name}" if name else "neurons",
    )


def _frame_series(record: Record, frame: Frame, side: np.ndarray) -> Sequence[ViewSeries]:
    # Without opposites, stars have the other color, so that neurons of side + stay visible.
    kinds = {1: "star" if -1 in frame.stars else "opposite", -1: "opposite"}
    size = 20.5 if len(frame.stars) > 1 else max(7.0, 40 / math.sqrt(len(frame.stars[1])))
    names = star_names(record)
    found = [_points(names[sign], stars, kinds[sign], size) for sign, stars in frame.stars.items()]
    labels = side_names(record)
    for sign, kind in ((0, "side0"), (1, "side+"), (-1, "side-")):
        if (side == sign).any():
            name = f"{labels[sign]} ({(side == sign).sum()})"
            found.append(_points(name, frame.points[side == sign], kind))
    return found


def _points(name: str, at: np.ndarray, kind: str, size: float = 0.0) -> ViewSeries:
    x, y = (tuple(round(float(value), 4) for value in at[:, axis]) for axis in (0, 1))
    return ViewSeries(name, x, y, mark="points", kind=kind, size=size)
