"""The contract of tasks, over every named family; and planted failures that it must catch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from contracts import check_family
from toys import Blobs, BlobsTask, Halfspace, HalfspaceTask, Products, ProductsTask
from unlazy.core.metrics import Outputs
from unlazy.lab import registry
from unlazy.tasks.base import Batch


@pytest.mark.parametrize("name", registry.tasks())
def test_named_families_keep_the_contract(name):
    check_family(registry.tasks()[name].value)


@pytest.mark.parametrize(
    "family",
    [
        Halfspace(5),
        Blobs(),
        Blobs(classes=2),
        Blobs(side=8),
        Blobs(side=8, classes=2),
        Products(),
        Products(scalar=True),
    ],
    ids=["signs", "classes", "two blobs", "images", "two kinds of images", "reals", "one real"],
)
def test_families_written_by_a_user_keep_the_contract(family):
    check_family(family)


def broken(kind=HalfspaceTask, family=None, **changes):
    """A family with parts of its task replaced."""
    family = family or Halfspace(5)
    bad = type("Broken", (kind,), changes)

    def task(self, *, key):
        return bad(*[getattr(family.task(key=key), field) for field in kind.__dataclass_fields__])

    return type("BrokenFamily", (type(family),), {"task": task})(**vars(family))


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (
            broken(
                target=lambda self, x: jnp.ones(len(x)),
                draw=lambda self, n, key: HalfspaceTask.draw(HalfspaceTask(self.u), n, key),
            ),
            "target",
        ),
        (broken(features=property(lambda self: 2 * self.u[None])), "unit rows"),
        (broken(chance=property(lambda self: jnp.asarray(0.1))), "chance"),
        (broken(basis=property(lambda self: 2 * jnp.eye(5))), "orthonormal"),
        (broken(features=property(lambda self: jnp.eye(5)[:1])), "another key gave the same"),
        (broken(draw=lambda self, n, key: Batch(jnp.ones((n, 5)), jnp.zeros(n))), "no signs"),
        (broken(outputs=property(lambda self: Outputs("reals"))), "outputs"),
        (
            broken(BlobsTask, Blobs(), target=lambda self, x: jnp.ones((len(x), 10))),
            "no one-hot rows",
        ),
        (broken(BlobsTask, Blobs(), target=lambda self, x: jnp.ones(len(x))), "another shape"),
        (broken(BlobsTask, Blobs(), chance=property(lambda self: jnp.asarray(0.5))), "chance"),
        (
            broken(ProductsTask, Products(), chance=property(lambda self: jnp.asarray(15.0))),
            "chance",
        ),
    ],
)
def test_the_contract_catches(family, says):
    with pytest.raises(AssertionError, match=says):
        check_family(family)


def test_a_learner_cannot_reach_the_ground_truth_through_the_sampler():
    """A sampler has examples, their type and, if available, their distribution; nothing else."""
    sampler = Halfspace(3).task(key=jax.random.key(0)).sampler
    fields = {f for f in vars(sampler) if not f.startswith("_")}
    assert (
        fields == {"draw", "dimension", "basis", "outputs", "shape", "population"}
        and sampler.population is None
    )
    assert not isinstance(sampler, HalfspaceTask) and isinstance(sampler, eqx.Module)
