"""Each discrepancy is checked by computations from printed values; nothing is trained."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats

from unlazy.lab.paper_files import PAPERS, rows_of

RESULTS = Path(__file__).parents[3] / "results"
ONE_STEP = "One Step"


def printed(column, measure):
    """Return printed values of a column by table and variant."""
    return {
        (number, row.get("variant", "")): float(row[column])
        for number in range(1, 6)
        for row in rows_of(PAPERS / "shi2022" / "published" / f"table{number}.csv")
        if row["measure"] == measure
    }


def measured(claim, arm, measure):
    """Return a mean of the reading "practical", in which readouts are ridge regressions."""
    path = RESULTS / "readings" / "shi2022-tables-paper.json"
    told = json.loads(path.read_text(encoding="utf-8"))["results"]
    (found,) = (each for each in told if each["reading"]["name"] == "practical")
    (own,) = (each for each in found["claims"] if each["claim"] == claim)
    (draw,) = (d for d in own["draws"] if (d["arm"], d["measure"]) == (arm, measure))
    return draw["mean"]


#: Pr[number of relevant patterns | y] for the parity mixture of Table 1: k = 5, po = 1/2.
COUNTS = np.arange(6)
UNIFORM = scipy.stats.binom.pmf(COUNTS, 5, 0.5)
EQUAL = np.array([1, 0, 0, 0, 0, 1]) / 2
POSITIVE, NEGATIVE = (
    (UNIFORM + EQUAL) * (COUNTS % 2 == odd) for odd in (1, 0)
)  # each sums to one, since both classes have probability 1/2
#: Pr[y = −1] by table and variant: that of the parity unless the table states another one.
INTERVAL = scipy.stats.binom.cdf(19, 30, 2 / 3)
RATES = {(2, ""): INTERVAL, (4, "0.8"): 0.8, (4, "0.9"): 0.9}


def threshold(rate):
    """Return the accuracy of the best threshold on the number of relevant patterns of a parity."""
    return max(rate * NEGATIVE[:t].sum() + (1 - rate) * POSITIVE[t:].sum() for t in range(7))


def test_one_step_accuracies_are_those_of_the_negative_class():
    assert POSITIVE.sum() == pytest.approx(1) and NEGATIVE.sum() == pytest.approx(1)
    assert pytest.approx(0.415, abs=5e-4) == INTERVAL
    values = [
        (place, value / 100)
        for measure in ("train_accuracy", "test_accuracy")
        for place, value in printed(ONE_STEP, measure).items()
    ]
    assert len(values) == 16

    def within(predicted, examples=1000):
        errors = [
            (value - p) / np.sqrt(p * (1 - p) / examples) if p < 1 else np.inf
            for place, value in values
            for p in [predicted(place)]
        ]
        return int(np.sum(np.abs(errors) <= 2))

    def negative(place):
        return RATES.get(place, 0.5)

    def frequent(place):
        return max(negative(place), 1 - negative(place))

    def best(place):
        return 1.0 if place[0] == 2 else threshold(negative(place))

    assert within(negative) == 14 and within(negative, 5000) == 10
    assert within(frequent) == 12 and frequent((2, "")) == pytest.approx(0.585, abs=5e-4)
    assert within(lambda _: 0.5) == 10
    assert within(best) == 0
    assert [100 * threshold(rate) for rate in (0.5, 0.8, 0.9)] == pytest.approx(
        [84.375, 90.625, 95.3125]
    )
    assert measured("shi2022/table1", ONE_STEP, "test_accuracy") == pytest.approx(84.7, abs=0.1)
    variances = [
        (value - p) ** 2 / (p * (1 - p)) for place, value in values for p in [negative(place)]
    ]
    assert round(1 / np.mean(variances)) == 535


def test_a_neuron_with_the_printed_cosine_allows_more_than_the_printed_accuracy():
    """A random part of norm sin θ in d = 500 dimensions adds noise of variance about sin²θ·D/(4d)
    to ⟨w, x⟩, which is nearly normal for D = 100 patterns.
    """
    cosine = printed(ONE_STEP, "cosine")[1, ""]
    noise = np.sqrt((1 - cosine**2) * 100 / (4 * 500))
    above = scipy.stats.norm.cdf((COUNTS - 2.5) * cosine / np.sqrt(5) / noise)
    accuracy = (NEGATIVE @ (1 - above) + POSITIVE @ above) / 2
    assert accuracy == pytest.approx(0.825, abs=0.005)


def nearest(d, m, *, absolute=False):
    """Return c ↦ Pr[max_i cos > c] for m random directions and a fixed one in dimension d; cos² has
    a Beta(1/2, (d − 1)/2) distribution.
    """
    sides = 2 if absolute else 1
    return lambda c: -np.expm1(m * np.log1p(-sides * _beyond(c, d)))


def _beyond(c, d):
    return scipy.stats.beta.sf(c**2, 0.5, (d - 1) / 2) / 2


def test_table_4_has_the_cosines_of_dimension_100():
    cosines = printed("RF", "cosine")
    sizes = {(2, ""): (500, 100), (3, "d=100"): (100, 300), (3, "d=2000"): (2000, 300)}
    sizes[5, "n=10k"] = (500, 50)
    fits = {
        place: nearest(*sizes.get(place, (500, 300)))(value) for place, value in cosines.items()
    }
    others = [tail for (table, _), tail in fits.items() if table != 4]
    assert len(others) == 6 and all(0.025 < tail < 0.975 for tail in others)
    imbalanced = [cosines[4, "0.8"], cosines[4, "0.9"]]
    assert imbalanced == [0.293, 0.296] and max(fits[4, "0.8"], fits[4, "0.9"]) < 4e-9
    assert [nearest(100, 300)(c) for c in imbalanced] == pytest.approx([0.357, 0.328], abs=1e-3)
    assert 5 * max(fits[4, "0.8"], fits[4, "0.9"]) < 2e-8, "an average exceeds no maximum of five"
    for m in (300, 600):
        assert max(nearest(500, m, absolute=True)(c) for c in imbalanced) < 2e-8
    assert np.log(2) / _beyond(0.293, 500) == pytest.approx(6e10, rel=0.05)
    for d, mean, deviation in ((500, 0.128, 0.017), (100, 0.284, 0.036)):
        c = np.linspace(0, 0.9, 20_001)
        tail = nearest(d, 300)(c)
        first, second = np.trapezoid(tail, c), 2 * np.trapezoid(c * tail, c)
        assert first == pytest.approx(mean, abs=5e-4)
        assert np.sqrt(second - first**2) == pytest.approx(deviation, abs=5e-4)


def test_the_maximum_cosine_has_this_distribution():
    draws = np.random.default_rng(0).normal(size=(2000, 20, 10))
    cosines = (draws[..., 0] / np.linalg.norm(draws, axis=2)).max(axis=1)
    found = scipy.stats.kstest(cosines, lambda c: 1 - nearest(10, 20)(c))
    assert found.pvalue > 0.01


def left_over(d, m, ratio):
    """Return the distribution function of max_i cos(w_i, u) for w_i = ratio·w + a_i·u with w ~
    N(0, I_d) and a_i ~ N(0, 1), in m pairs with opposite a_i.

    In a pair the larger cosine has tan = ratio·χ_{d−1}/(ratio·z + |a|), and z + |a|/ratio has a
    skew normal distribution with shape 1/ratio.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    low, high = scipy.stats.chi.ppf([1e-12, 1 - 1e-12], d - 1)
    rest = (low + high) / 2 + (high - low) / 2 * nodes
    density = scipy.stats.chi.pdf(rest, d - 1) * weights * (high - low) / 2

    def below(c):
        x = c / np.sqrt(1 - c**2) * rest / np.hypot(1, 1 / ratio)
        skewed = scipy.special.ndtr(x) - 2 * scipy.special.owens_t(x, 1 / ratio)
        return float(density @ skewed) ** m

    return below


def quantile(p, below):
    return scipy.optimize.brentq(lambda c: below(c) - p, 0.01, 0.9999)


def test_one_step_angles_grow_with_the_input_dimension():
    cosines = printed(ONE_STEP, "cosine")
    by_dimension = {
        100: cosines[3, "d=100"],
        500: cosines[1, ""],
        2000: cosines[3, "d=2000"],
    }
    squares = [1 / c**2 - 1 for c in by_dimension.values()]
    assert squares == pytest.approx([0.069, 0.391, 2.189], abs=5e-4)
    slope = np.log(squares[2] / squares[0]) / np.log(20)
    assert slope == pytest.approx(1.15, abs=0.005)
    for claim, suffix in (("table1", ""), ("table3", ", d=100"), ("table3", ", d=2000")):
        ours = measured(f"shi2022/{claim}", f"{ONE_STEP}{suffix}", "cosine")
        assert ours == pytest.approx(0.999, abs=5e-4)
    median = by_dimension[500]
    ratio = scipy.optimize.brentq(lambda r: left_over(500, 300, r)(median) - 0.5, 0.01, 1)
    fitted = {d: left_over(d, 300, ratio) for d in by_dimension}
    intervals = {d: [quantile(p, each) for p in (0.025, 0.975)] for d, each in fitted.items()}
    assert np.round(list(intervals.values()), 3).tolist() == [
        [0.948, 0.979],
        [0.796, 0.9],
        [0.548, 0.717],
    ]
    for d, c in (*by_dimension.items(), (500, cosines[5, "n=25k"])):
        assert intervals[d][0] < c < intervals[d][1]
    for variant in ("0.8", "0.9"):
        c = cosines[4, variant]
        assert intervals[100][0] < c < intervals[100][1] and c > intervals[500][1]


def test_the_angle_of_a_remainder_has_this_distribution():
    rng, d, m, ratio = np.random.default_rng(0), 30, 20, 0.2
    w, a = rng.normal(size=(2000, m, d)), rng.normal(size=(2000, m))
    largest = np.full(2000, -1.0)
    for sign in (1, -1):
        neurons = ratio * w
        neurons[..., 0] += sign * a
        cosines = neurons[..., 0] / np.linalg.norm(neurons, axis=2)
        largest = np.maximum(largest, cosines.max(axis=1))
    found = scipy.stats.kstest(largest, np.vectorize(left_over(d, m, ratio)))
    assert found.pvalue > 0.01
