"""Plot of neurons among the hidden directions: their cosine similarities in the plane, by classical
multidimensional scaling.

Each hidden direction u gives two stars, +u and -u; where there are many directions, such as the
centres of a mixture, each gives one. The stars and neurons of one step are placed together, so that
distances in the plane are as near as a plane allows to the distances between the normalised
weights.
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

#: Shorter than this, the picture of a star has no direction to turn by.
SHORT = 1e-6
#: The step by which neurons are told apart, as in the paper: "closest to the star after two steps".
SORTING_STEP = 2
#: Of more directions than these, opposites are not drawn, and neurons are told apart by whether
#: they end near one.
FEW = 2
#: The cosine from which on a neuron is near a direction.
NEAR = 0.9
#: The cosine from which on a neuron is drawn as a member of a cluster that was found, and not known
#: beforehand.
LINKED = 0.5


def normalise(vectors: np.ndarray) -> np.ndarray:
    """Rows of length one.

    A row of zeros stays zero, a row with a value that is not finite becomes NaN.
    """
    rows = np.array(vectors, float)
    rows[~np.isfinite(rows).all(axis=1)] = np.nan
    # Scaled before the norm is taken: squares of tiny weights underflow, squares of huge ones
    # overflow.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = np.divide(rows, largest, out=np.zeros_like(rows), where=largest != 0)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    result: np.ndarray = np.divide(rows, length, out=np.zeros_like(rows), where=length != 0)
    return result


def scale_to_plane(similarity: np.ndarray) -> np.ndarray:
    """Classical multidimensional scaling of a matrix of inner products: one point of the plane a
    row.

    Written out, because scikit-learn has `ClassicalMDS` only in releases later than the oldest one
    supported, and its `MDS` (SMACOF) starts at random, so that the frames of one run could not be
    compared.
    """
    count = len(similarity)
    centred = (
        similarity - similarity.mean(axis=0) - similarity.mean(axis=1)[:, None] + similarity.mean()
    )
    top = min(2, count)
    values, vectors = scipy.linalg.eigh(centred, subset_by_index=(count - top, count - 1))
    points = np.zeros((count, 2))
    # Rounding makes eigenvalues that should be zero slightly negative.
    points[:, :top] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1]
    return points


def embed(
    neurons: np.ndarray, directions: np.ndarray, like: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Points of the neurons `(count, 2)` and stars `(2 r, 2)`: the r directions, then their
    opposites.

    The origin is where a zero weight lies, and the first star lies on the positive x axis. What is
    left, a reflection at that axis, is chosen to come nearest to the points `like` (those of the
    step before), or else by the neurons themselves. A neuron that is not finite is left out: its
    point is NaN.
    """
    units, ways = normalise(neurons), normalise(directions)
    require(
        bool(np.isfinite(ways).all() and len(ways)),
        "A map of neurons needs at least one hidden direction, of finite numbers.",
    )
    finite = np.isfinite(units).all(axis=1)
    rows = np.concatenate([ways, -ways, units[finite]])
    plane = scale_to_plane(rows @ rows.T)
    # Opposite stars are mirror images of one another in the zero vector, so that their middle is
    # its picture.
    plane = plane - plane[: 2 * len(ways)].mean(axis=0)
    plane = _turn(plane)
    points = np.full((len(units), 2), np.nan)
    points[finite] = plane[2 * len(ways) :]
    if _upside_down(points, like):
        plane, points = plane * (1, -1), points * (1, -1)
    return points, plane[: 2 * len(ways)]


def _turn(plane: np.ndarray) -> np.ndarray:
    """Rotated so that the first point lies on the positive x axis."""
    x, y = plane[0]
    length = np.hypot(x, y)
    if length < SHORT:
        return plane
    turned: np.ndarray = plane @ np.array([[x, -y], [y, x]]) / length
    turned[0] = length, 0.0
    return turned


def _upside_down(points: np.ndarray, like: np.ndarray | None) -> bool:
    """Whether the reflected points are the better choice.

    Without a model, the neurons high up should be fewer and farther out.
    """
    y = points[:, 1]
    if like is not None and np.isfinite(like).all(axis=1).any():
        agreement = float(np.nansum(y * like[:, 1]))
        if agreement != 0:
            return agreement < 0
    y = y[np.isfinite(y)]
    skew = float(np.sum(y**3))
    # Symmetric data have no skew but rounding: there the first neuron off the axis decides.
    if abs(skew) > 1e-9 * float(np.sum(np.abs(y) ** 3)):
        return skew < 0
    off = y[np.abs(y) > SHORT]
    return bool(len(off) and off[0] < 0)


def nearest_star(neurons: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """+1 for neurons whose nearest star is a direction, -1 for an opposite, 0 where there is none:
    weight zero, orthogonal, not finite.
    """
    cosines = np.nan_to_num(normalise(neurons)) @ normalise(directions).T
    best = np.take_along_axis(cosines, np.abs(cosines).argmax(axis=1)[:, None], axis=1)[:, 0]
    result: np.ndarray = np.sign(best).astype(int)
    return result


@dataclasses.dataclass(frozen=True)
class Frame:
    """The neurons of one recorded step in the plane.

    `cosine` is the greatest of the step; `left_out` counts those not finite.
    """

    step: int
    points: np.ndarray
    stars: dict[
        int, np.ndarray
    ]  # directions under +1; where they are few, their opposites under −1
    cosine: float
    left_out: int

    @property
    def caption(self) -> str:
        """One line on what is seen."""
        text = f"max cosine {self.cosine:.3f}" if np.isfinite(self.cosine) else "no finite cosine"
        return text + (
            f"; {self.left_out} of {len(self.points)} neurons not finite" if self.left_out else ""
        )


def has_neurons(record: Record) -> bool:
    """Whether a record holds what a map of its neurons needs."""
    return {"neurons", "directions"} <= record.arrays.keys() or has_centres(record)


def has_centres(record: Record) -> bool:
    """Whether no hidden direction is known, and neurons are seen among the centres of their own
    clusters at the end.
    """
    return {"neurons", "centres"} <= record.arrays.keys() and bool(
        np.any(record.arrays["centres"][-1])
    )


def _directions(record: Record, place: int) -> np.ndarray:
    """The stars of a step: hidden directions, or the centers that there are."""
    if "directions" in record.arrays:
        directions: np.ndarray = record.arrays["directions"][place]
        return directions
    centres = record.arrays["centres"]
    used: np.ndarray = centres[place][np.any(centres[-1] != 0, axis=1)]
    return used


def frames(record: Record) -> list[Frame]:
    """All recorded steps of a record in the plane, each reflected to resemble the one before."""
    found: list[Frame] = []
    for place, step in enumerate(record.steps):
        neurons, directions = record.arrays["neurons"][place], _directions(record, place)
        points, stars = embed(neurons, directions, found[-1].points if found else None)
        if "cosine" in record.measurements:
            cosine = record.measurements["cosine"][place]
        else:
            cosine = float(np.max(np.nan_to_num(normalise(neurons)) @ normalise(directions).T))
        count = len(directions)
        shown = {1: stars[:count]} if _is_crowded(record) else {1: stars[:count], -1: stars[count:]}
        found.append(Frame(step, points, shown, cosine, int(np.isnan(points[:, 0]).sum())))
    return found


def _count(record: Record) -> int:
    return len(_directions(record, -1))


def _is_crowded(record: Record) -> bool:
    """Whether only the directions are drawn: there are many, or they are centers."""
    return has_centres(record) or _count(record) > FEW


def star_names(record: Record) -> dict[int, str]:
    """What the stars are."""
    if has_centres(record):
        return {1: f"center of a cluster at the end ({_count(record)})"}
    few = {1: "hidden direction +u", -1: "its opposite −u"}
    return few if _count(record) <= FEW else {1: f"hidden direction ({_count(record)})"}


def side_names(record: Record) -> dict[int, str]:
    """What tells the neurons apart."""
    if has_centres(record):
        return {1: f"neuron that ends within cosine {LINKED:g} of a center", 0: "other neuron"}
    if _count(record) > FEW:
        return {1: f"neuron that ends within cosine {NEAR:g} of one", 0: "other neuron"}
    return {
        1: "neuron nearest +u after two steps",
        -1: "neuron nearest −u after two steps",
        0: "neuron near neither",
    }


def sides(record: Record) -> np.ndarray:
    """The side of each neuron, by which it is coloured at every step.

    Of few directions, it is `nearest_star` after two steps (or at the last step, if that was
    earlier); of many, +1 for neurons that are near a direction at the end.
    """
    if _is_crowded(record):
        cosines = (
            np.nan_to_num(normalise(record.arrays["neurons"][-1]))
            @ normalise(_directions(record, -1)).T
        )
        result: np.ndarray = (
            cosines.max(axis=1) >= (LINKED if has_centres(record) else NEAR)
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
        "This record holds no neurons: its trial had no Silhouette probe, or it was read "
        "without arrays.",
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
        caption="Cosine similarities in the plane, by classical multidimensional scaling of each "
        "step. Radius: norm of the unit weight vector projected onto the plane.",
        name=f"neurons-{name}" if name else "neurons",
    )


def _frame_series(record: Record, frame: Frame, side: np.ndarray) -> Sequence[ViewSeries]:
    # Without opposites, stars take the other color, on which neurons of side + are seen.
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
