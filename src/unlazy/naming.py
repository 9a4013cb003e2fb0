"""Names under which tasks and learners are offered."""

from __future__ import annotations

from typing import NamedTuple

from unlazy.learners.base import Learner
from unlazy.tasks.base import Family


class Named(NamedTuple):
    """A family or learner, and what it is in a few words."""

    thing: Family | Learner
    what: str
