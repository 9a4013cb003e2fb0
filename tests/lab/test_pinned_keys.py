"""Keys of the trials of all claims: a renamed class, field or function must not change them.

If a study changes on purpose, `PYTHONPATH=tests python tests/lab/test_pinned_keys.py` rewrites the
file; records of the former keys then no longer answer.
"""

import hashlib
import json
from pathlib import Path

from smoke import smoke_trials

PINNED = Path(__file__).with_name("pinned_keys.json")
#: A claim whose constants are computed by XLA: their last bit depends on the flags of the tests.
NOT_PINNED = "shi2022/table2"


def digests():
    """Return a hash of the keys of each claim's trials at smoke scale."""
    keys = {}
    for name, trial in smoke_trials().items():
        keys.setdefault(name.partition(":")[0], []).append(trial.key)
    return {
        claim: hashlib.sha256(" ".join(found).encode()).hexdigest()[:16]
        for claim, found in keys.items()
        if claim != NOT_PINNED
    }


def test_keys_are_those_of_earlier_records():
    assert digests() == json.loads(PINNED.read_text())


if __name__ == "__main__":
    PINNED.write_text(json.dumps(digests(), indent=1) + "\n")
