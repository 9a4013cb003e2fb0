"""A short fuzzing run; see `fuzzing`."""

import pickle

import pytest

import fuzzing
from unlazy.core.errors import BadInput
from unlazy.lab.engines.pools import messages

INPUTS = 150


@pytest.mark.parametrize("name", fuzzing.TARGETS)
def test_no_input_crashes_anything_or_runs_code(name):
    fuzzing.fuzz(name, max(10, int(INPUTS * fuzzing.TARGETS[name][2])), seeded=True)


def test_a_pickle_instead_of_records_is_not_loaded():
    class Trap:
        def __reduce__(self):
            return (fuzzing.MARK.touch, ())

    with pytest.raises(BadInput, match="is damaged"):
        messages.read(pickle.dumps(Trap()))
    assert not fuzzing.MARK.exists()
