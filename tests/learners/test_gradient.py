"""The training loop against plain loops written out here, and against itself on other paths."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from contracts import is_close
from programs import drawn
from selection import slow_but_first
from toys import Halfspace, small_init, small_learner
from unlazy.core.errors import BadInput
from unlazy.core.losses import LOSSES
from unlazy.learners import sources
from unlazy.learners.gradient import Descent, GradientDescent
from unlazy.learners.sources import FreshGradients, SampleGradients
from unlazy.tasks.base import Batch, Sampler
from unlazy.tasks.dictionary.patterns import ParityMixture

KEY = jax.random.key(7)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def halfspace_sampler(d=3):
    return drawn(Halfspace(d), jax.random.key(0)).sampler


def start(learner, sampler, n):
    """Return the initial network and sample that `fit` draws from KEY."""
    key_init, key_data, _ = jax.random.split(KEY, 3)
    return learner.init(sampler.dimension, key=key_init), sampler.draw(n, key_data)


def plain_loop(net, sample, steps, update):
    """Train on the full batch, one Python step at a time."""
    for _ in range(steps):
        net = update(net, sample)
    return net


def fit(learner, sampler, n):
    """Train from KEY in one compiled program."""
    return jax.jit(lambda key: learner.fit(sampler, n, key=key))(KEY)


def last(trace):
    return jax.tree.map(lambda leaf: leaf[-1], trace.models)


@pytest.mark.parametrize("loss", LOSSES)
def test_full_batch_descent_with_decay_and_own_rates(loss):
    rates, decay = {"w": 0.3, "a": 0.05, "c": 0.2}, {"w": 0.1}
    learner = GradientDescent(small_init(), (Descent(rates, steps=5, loss=loss, decay=decay),))
    sampler = halfspace_sampler()
    net, sample = start(learner, sampler, 20)

    def update(net, sample):
        g = jax.grad(lambda net: jnp.mean(LOSSES[loss](net(sample.x), sample.y)))(net)
        moved = {
            name: getattr(net, name)
            - rates[name] * (getattr(g, name) + 2 * decay.get(name, 0.0) * getattr(net, name))
            for name in rates
        }
        return net.put(moved)

    expected = plain_loop(net, sample, 5, update)
    found = last(fit(learner, sampler, 20))
    assert is_close(found, expected, 1e-10)
    np.testing.assert_array_equal(found.b, net.b, err_msg="a group that was not named moved")


@pytest.mark.parametrize(
    ("options", "peer"),
    [({"momentum": 0.9}, optax.sgd(0.1, momentum=0.9)), ({"optimizer": "adam"}, optax.adam(0.1))],
)
def test_optimizers_equal_optax(options, peer):
    learner = GradientDescent(
        small_init(), (Descent({"w": 0.1, "b": 0.1, "a": 0.1}, steps=7, **options),)
    )
    sampler = halfspace_sampler()
    net, sample = start(learner, sampler, 20)
    groups = net.get(("w", "b", "a"))
    state = peer.init(groups)
    for _ in range(7):
        g = jax.grad(lambda groups: jnp.mean(LOSSES["hinge"](net.put(groups)(sample.x), sample.y)))(
            groups
        )
        with jax.numpy_dtype_promotion("standard"):  # Adam's bias correction mixes dtypes
            move, state = peer.update(g, state, groups)
        groups = optax.apply_updates(groups, move)
    assert is_close(last(fit(learner, sampler, 20)).get(("w", "b", "a")), groups, 1e-10)


def test_recorded_models_are_those_of_shorter_trainings():
    sampler = halfspace_sampler()
    trace = fit(small_learner(steps=9, record=(0, 2, 5)), sampler, 32)
    assert trace.steps == (0, 2, 5, 9)
    for index, step in enumerate(trace.steps[1:], 1):
        shorter = last(fit(small_learner(steps=step, record=()), sampler, 32))
        assert is_close(jax.tree.map(lambda leaf, i=index: leaf[i], trace.models), shorter, 0)


def test_recorded_losses_are_the_means_between():
    sampler = halfspace_sampler()
    each = fit(small_learner(steps=6, record=tuple(range(7)), batch=None), sampler, 32).losses
    some = fit(small_learner(steps=6, record=(0, 2), batch=None), sampler, 32).losses
    assert np.isnan(each[0]) and np.isnan(some[0])
    np.testing.assert_allclose(some[1:], [np.mean(each[1:3]), np.mean(each[3:])], rtol=1e-12)


def test_an_epoch_visits_every_example_once_in_a_new_order():
    sample = Batch(jnp.arange(12.0)[:, None], jnp.ones(12))

    def visited(first, last):
        """Return the examples of steps first ≤ t < last in order."""

        def step(seen, answer, batch, t):
            return jax.lax.dynamic_update_slice_in_dim(seen, batch.x[:, 0], 4 * t, 0)

        options = {
            "batch": 4,
            "loss": None,
            "weigh": lambda batch, whole: jnp.ones(len(batch.y)),
            "model": None,
            "key": KEY,
        }
        fold = jax.jit(
            lambda span: SampleGradients().fold(step, jnp.full(24, -1.0), sample, span, **options)
        )
        return [int(v) for v in fold(jnp.array([first, last])) if v >= 0]

    both = visited(0, 6)
    assert sorted(both[:12]) == sorted(both[12:]) == list(range(12))
    assert both[:12] != both[12:]
    assert visited(0, 2) + visited(2, 5) + visited(5, 6) == both, (
        "a span that begins within an epoch continues its order"
    )


def test_learning_rates_are_divided_by_ten_after_a_fraction_of_the_steps():
    """On the whole sample, where the order does not matter, one stage that drops equals two
    stages.
    """
    dropping = Descent({"w": 0.3, "a": 0.1}, steps=7, drop=0.6)  # after 4.2 steps, rounded
    apart = (Descent({"w": 0.3, "a": 0.1}, steps=4), Descent({"w": 0.03, "a": 0.01}, steps=3))
    found, expected = (
        fit(GradientDescent(small_init(), stages, record=(2, 4, 5)), halfspace_sampler(), 60)
        for stages in ((dropping,), apart)
    )
    assert is_close(found.models, expected.models, 1e-5)
    assert not is_close(found.models.at(-1), found.models.at(1), 1e-5), "the slow steps move, too"


def test_pieces_of_a_batch_give_the_gradient_of_the_whole(monkeypatch):
    sampler = halfspace_sampler()
    learner = GradientDescent(
        small_init(), (Descent({"w": 0.3, "a": 0.1}, steps=3, class_weighted=True, smoothing=0.2),)
    )
    whole = last(fit(learner, sampler, 60))
    monkeypatch.setattr(sources, "CHUNK", 16)
    assert sources.chunks(60) == 4
    assert is_close(last(fit(learner, sampler, 60)), whole, 1e-12)


def test_a_batch_that_cannot_be_cut_evenly_stays_whole(monkeypatch):
    monkeypatch.setattr(sources, "CHUNK", 16)
    assert sources.chunks(61) == 1 and sources.chunks(16) == 1


def test_class_weights_balance_the_classes():
    """Weighted training on unequal classes equals plain training on the sample with the small class
    repeated.
    """
    x = jax.random.normal(jax.random.key(1), (8, 3))
    y = jnp.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    unequal, repeated = (
        Batch(x, y),
        Batch(jnp.concatenate([x[:2]] * 3 + [x[2:]]), jnp.concatenate([y[:2]] * 3 + [y[2:]])),
    )

    def train(sample, weighted):
        learner = GradientDescent(
            small_init(), (Descent({"w": 0.3, "a": 0.3}, steps=4, class_weighted=weighted),)
        )
        return last(fit(learner, Sampler(lambda n, key: sample, 3), len(sample.y)))

    assert is_close(train(unequal, True), train(repeated, False), 1e-12)
    assert not is_close(train(unequal, False), train(repeated, False), 1e-6)


def test_full_decay_is_exact_where_plain_decay_is_not():
    """w ← −ηg to the last bit; the textbook formula with 2ηλ = 1 leaves a residue larger than a
    tiny step.
    """
    with jax.enable_x64(False):
        rate, sampler = 1e-9, halfspace_sampler()
        learner = GradientDescent(small_init(), (Descent({"w": rate}, steps=1, full_decay=("w",)),))
        net, sample = start(learner, sampler, 20)
        g = jax.grad(lambda net: jnp.mean(LOSSES["hinge"](net(sample.x), sample.y)))(net).w
        np.testing.assert_allclose(last(fit(learner, sampler, 20)).w, -rate * g, rtol=1e-4)
        textbook = net.w - jnp.float32(rate) * (g + 2 * jnp.float32(1 / (2 * rate)) * net.w)
        assert np.max(np.abs(textbook + rate * g)) > 3 * np.max(np.abs(rate * g))


def test_spread_sets_the_root_mean_square_of_the_preactivations():
    sampler = halfspace_sampler()
    stage = Descent({"w": 1.0}, steps=1, full_decay=("w",), spread=0.7)
    learner = GradientDescent(small_init(m=10), (stage,))
    _, sample = start(learner, sampler, 50)
    assert np.sqrt(
        np.mean(np.square(sample.x @ last(fit(learner, sampler, 50)).w.T))
    ) == pytest.approx(0.7, rel=1e-10)


def test_training_in_the_span_equals_training_in_the_whole_space():
    """The dictionary spans the inputs: coordinates plus a carried rest is the same algorithm as
    full d, decay and momentum included.
    """
    task = drawn(ParityMixture(d=20, D=6, k=3), jax.random.key(0))
    stages = (
        Descent({"w": 0.5, "b": 0.1}, steps=1, decay={"w": 0.2}, smoothing=0.3),
        Descent({"w": 0.3, "a": 0.1}, steps=5, batch=16, decay={"w": 0.05}, momentum=0.5),
    )
    learner = GradientDescent(small_init(), stages, record=(0, 1, 3))
    span = fit(learner, task.sampler, 64)
    full = Sampler(lambda n, key: task.sample(n, key=key), task.dimension)
    whole = fit(learner, full, 64)
    assert is_close(span.models, whole.models, 1e-10)
    assert is_close(span.seen.x @ task.basis, whole.seen.x, 1e-12)
    assert (
        np.linalg.norm(span.models.w[-1] - span.models.w[-1] @ task.basis.T @ task.basis) > 0.1
    ), "the rest was lost"


def test_a_step_with_full_decay_may_keep_a_fraction_of_the_weights():
    """p ← c·p − rate·∇ for groups with full decay; other groups are not concerned."""

    def weights(**options):
        stage = Descent({"w": 0.1, "a": 0.1}, steps=1, full_decay=("w",), **options)
        trace = fit(GradientDescent(small_init(), (stage,), record=(0,)), halfspace_sampler(), 32)
        return trace.models

    replaced, kept = weights(), weights(kept=0.25)
    expected = replaced.w[1] + 0.25 * replaced.w[0]
    assert np.allclose(kept.w[1], expected, rtol=1e-12) and np.array_equal(kept.a, replaced.a)
    for options in ({"kept": 0.5}, {"kept": 1.5, "full_decay": ("w",)}):
        with pytest.raises(BadInput, match="kept is a fraction"):
            Descent({"w": 0.1}, steps=1, **options)


@pytest.mark.parametrize("fresh", slow_but_first([False, True]))
def test_adam_never_uses_the_coordinates_of_a_hidden_dictionary(fresh):
    """It does not commute with rotations: on a task with a basis it trains the weights of the
    inputs themselves.
    """
    task = drawn(ParityMixture(d=20, D=6, k=3), jax.random.key(0))
    stage = Descent({"w": 0.1, "a": 0.1}, steps=4, batch=16, optimizer="adam")
    learner = GradientDescent(
        small_init(), (stage,), source=FreshGradients() if fresh else SampleGradients()
    )
    full = Sampler(lambda n, key: task.sample(n, key=key), task.dimension)
    trace = fit(learner, task.sampler, 64)
    assert is_close(trace.models, fit(learner, full, 64).models, 1e-10)
    assert trace.seen.x.shape == (64, 6), "`seen` must be by coordinates"


def test_fresh_data_make_one_pass_over_n_examples():
    learner = GradientDescent(
        small_init(), (Descent({"w": 0.1, "a": 0.1}, batch=8),), source=FreshGradients()
    )
    assert learner.recorded(100) == (12,)
    drawn = []

    def draw(n, key):
        drawn.append(n)
        return halfspace_sampler().draw(n, key)

    trace = fit(learner, Sampler(draw, 3), 100)
    assert trace.steps == (12,) and set(drawn[1:]) == {
        8
    }  # the first draw is what the probes look at
    assert np.all(np.isfinite(trace.models.w))


def test_learners_share_the_initial_network_and_the_sample():
    sampler = halfspace_sampler()
    a = fit(small_learner(rate=0.1, record=(0,)), sampler, 32)
    b = fit(small_learner(rate=0.7, steps=3, record=(0,)), sampler, 32)
    np.testing.assert_allclose(a.models.w[0], b.models.w[0], rtol=1e-6)
    np.testing.assert_allclose(a.seen.x, b.seen.x, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Descent({}), "at least one parameter group"),
        (lambda: Descent({"w": 0.0}), "Omit a group to freeze it"),
        (lambda: Descent({"w": float("nan")}), "must be positive"),
        (lambda: Descent({"w": 1.0}, batch=0), "batch must be positive"),
        (lambda: Descent({"w": 1.0}, steps=-1), "steps must be"),
        (lambda: Descent({"w": 1.0}, loss="hing"), "loss must be one of"),
        (lambda: Descent({"w": 1.0}, optimizer="Adam"), "optimizer must be"),
        (lambda: Descent({"w": 1.0}, smoothing=0.0), "smoothing must be positive"),
        (lambda: Descent({"w": 1.0}, drop=1.5), "drop must be in"),
        (lambda: dataclasses.replace(small_learner(), precision=16), "precision must be 32 or 64"),
        (
            lambda: dataclasses.replace(small_learner(steps=9), source=FreshGradients()).fit(
                halfspace_sampler(), 64, key=KEY
            ),
            "need 72 fresh examples",
        ),
        (
            lambda: dataclasses.replace(small_learner(steps=None), source=FreshGradients()).fit(
                halfspace_sampler(), 4, key=KEY
            ),
            "at least the batch size",
        ),
        (lambda: Descent({"w": 1.0}, decay={"a": 1.0}), "must be in rates \\['w'\\]"),
        (lambda: Descent({"w": 1.0}, steps=1, spread=1.0), "requires 'w' in full_decay"),
        (lambda: Descent({"w": 1.0}).length(10), "batch is required"),
        (
            lambda: GradientDescent(small_init(), (Descent({"w": 1.0}, steps=1),)).fit(
                halfspace_sampler(), 0, key=KEY
            ),
            "n must be positive",
        ),
        (
            lambda: GradientDescent(small_init(), (Descent({"v": 1.0}, steps=1),)).fit(
                halfspace_sampler(), 4, key=KEY
            ),
            "parameter group named 'v'",
        ),
    ],
)
def test_contradictions_are_refused(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_a_wider_batch_than_the_sample_is_the_whole_sample():
    sampler = halfspace_sampler()
    whole = dataclasses.replace(small_learner(batch=None), record=())
    assert is_close(
        fit(whole, sampler, 16).models,
        fit(small_learner(batch=64, record=()), sampler, 16).models,
        0,
    )
