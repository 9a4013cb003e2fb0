"""The contract of tasks, over every named family; and planted failures that it must catch."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from contracts import check_family
from toys import Halfspace, HalfspaceTask
from unlazy.lab import registry as catalogue


@pytest.mark.parametrize("name", catalogue.tasks())
def test_named_families_keep_the_contract(name):
    check_family(catalogue.tasks()[name].thing)


def test_a_family_written_by_a_user_keeps_the_contract():
    check_family(Halfspace(5))


def broken(**changes):
    """The halfspace family with parts of its task replaced."""
    kind = type("Broken", (HalfspaceTask,), changes)
    family = type("BrokenFamily", (Halfspace,), {"task": lambda self, *, key: kind(Halfspace(5).task(key=key).u)})
    return family(5)


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (
            broken(target=lambda self, x: jnp.ones(len(x)), draw=lambda self, n, key: HalfspaceTask.draw(HalfspaceTask(self.u), n, key)),
            "target",
        ),
        (broken(features=property(lambda self: 2 * self.u[None])), "unit rows"),
        (broken(chance=property(lambda self: jnp.asarray(0.1))), "chance"),
        (broken(basis=property(lambda self: 2 * jnp.eye(5))), "orthonormal"),
        (broken(features=property(lambda self: jnp.eye(5)[:1])), "same secret"),
    ],
)
def test_the_contract_catches(family, says):
    with pytest.raises(AssertionError, match=says):
        check_family(family)


def test_a_learner_cannot_reach_the_secret_through_the_sampler():
    """A sampler has examples, a dimension and a basis; nothing else."""
    sampler = Halfspace(3).task(key=jax.random.key(0)).sampler
    assert {f for f in vars(sampler) if not f.startswith("_")} == {"draw", "dimension", "basis"}
    assert not isinstance(sampler, HalfspaceTask) and isinstance(sampler, eqx.Module)
