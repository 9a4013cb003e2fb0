"""Operators on quantities, and studies in variants."""

import copy
import pickle

import pytest

from unlazy.core.errors import BadInput
from unlazy.lab.rules import Check, Quantity, arm, arms, variants

NET, NTK = arms("Network", "NTK, wide")
ACCURACY = Quantity("Network", "test_accuracy")


def test_attributes_of_an_arm_are_its_quantities():
    assert NET.test_accuracy == ACCURACY and hash(NET.test_accuracy) == hash(ACCURACY)
    assert NET.cosine[2] == Quantity("Network", "cosine", 2)
    assert NET["loss, B=1"] == Quantity("Network", "loss, B=1")
    assert NET.cosine[None] == NET.cosine != NTK.cosine
    assert str(arm("Network")) == "Network" and arms("RF", variant="d=1")[0].x.arm == "RF, d=1"
    assert NET.test_accuracy - NTK.test_accuracy == Quantity(
        "Network", "test_accuracy", minus=Quantity("NTK, wide", "test_accuracy")
    )


def test_an_arm_and_its_quantities_are_copied_and_pickled():
    assert copy.deepcopy(NET).error == NET.error
    assert pickle.loads(pickle.dumps(NET)).error == NET.error
    assert pickle.loads(pickle.dumps(NET.error[2] - NTK.error)) == NET.error[2] - NTK.error


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (NET.gap >= 99, Check(NET.gap, lower=99)),
        (NET.gap <= 0.1, Check(NET.gap, upper=0.1)),
        (0.1 >= NET.gap, Check(NET.gap, upper=0.1)),
        (NET.gap.between(1, 2), Check(NET.gap, 1, 2)),
        (NET.gap.near(1, 0.5), Check(NET.gap, 0.5, 1.5)),
        (NET.gap - NTK.gap >= 6.8, Check(Quantity("Network", "gap", minus=NTK.gap), lower=6.8)),
        ((NET.gap >= 1).by_paper(), Check(NET.gap, lower=1, origin="paper")),
        ((NET.gap >= 1).by_construction(), Check(NET.gap, lower=1, origin="identity")),
        ((NET.gap >= 1).exactly(), Check(NET.gap, lower=1, exact=True)),
        ((NET.gap >= 1).at("paper"), Check(NET.gap, lower=1, scales=("paper",))),
        ((NET.gap >= 1).for_share(0.9), Check(NET.gap, lower=1, share=0.9)),
    ],
)
def test_comparisons_are_checks(check, expected):
    assert check == expected


def test_ambiguous_expressions_are_refused():
    with pytest.raises(TypeError, match="between"):
        _ = 1 <= NET.gap <= 2
    with pytest.raises(TypeError):
        list(NET.gap)
    with pytest.raises(BadInput, match="its own step"):
        _ = (NET.gap - NTK.gap)[2]
    with pytest.raises(BadInput, match="already a difference"):
        _ = NET.gap - NTK.gap - NTK.gap
    with pytest.raises(BadInput, match="a measure is a name"):
        _ = NET[2]
    with pytest.raises(BadInput, match="cannot fail"):
        _ = NET.test_accuracy >= 0
    with pytest.raises(AttributeError):
        _ = NET._private


def test_variants_of_a_study_have_their_own_settings_and_names():
    def study(scale, *, d=1, n=0):
        return {"net": (scale, d, n)}

    together = variants(study, {"small": {"d": {"smoke": 2, "laptop": 3}}, "plain": {"n": 4}})
    assert together("smoke") == {"net, small": ("smoke", 2, 0), "net, plain": ("smoke", 1, 4)}
    assert together("laptop")["net, small"] == ("laptop", 3, 0)
