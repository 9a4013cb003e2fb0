"""Readings of claims, compared on development seeds.

Every reading of the claims runs on the same seeds, and its printed numbers are compared as draws
(`lab.draws`). Readings share trials: an arm that a setting does not concern is run once. The
reading to be judged is chosen by a rule that is fixed here: most consistent printed numbers over
all claims together; then most checks that pass; then fewest departures from the text; then the
order in which the readings are listed. The choice is judged on held-out seeds by
`unlazy reproduce`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Self

from unlazy.core.errors import BadInput, require, require_one_of, unknown
from unlazy.lab.checking import Ruling, judge_checks, judge_numbers, ruling
from unlazy.lab.claims import Claim
from unlazy.lab.draws import Draw, Tally, draws
from unlazy.lab.provenance import made_by
from unlazy.lab.readings import Reading, halving, product
from unlazy.lab.rules import DEVELOPMENT, EVALUATION, SCALES, Scale
from unlazy.lab.serialization import from_plain, to_plain
from unlazy.lab.showing import Shown
from unlazy.lab.store import Run, Store
from unlazy.lab.study import Records, Rounds, Say, silent
from unlazy.lab.trials import Record, Runnable, now

RULE = (
    "most consistent printed numbers over all claims together; then most checks that pass; then "
    "fewest departures from the text; then the order of the list"
)


@dataclasses.dataclass(frozen=True)
class ClaimResult:
    """A claim under one reading, on development seeds.

    `strict`: numbers reproduced within printed precision. `passed`: checks that pass, of `checks`.
    """

    claim: str
    draws: tuple[Draw, ...]
    strict: int
    statement: Ruling
    passed: int
    checks: int

    @property
    def tally(self) -> Tally:
        """Counts of printed numbers."""
        return Tally.of_draws(self.draws)


@dataclasses.dataclass(frozen=True)
class ReadingResult:
    """A reading with the results of all claims, and its number of seeds."""

    reading: Reading
    seeds: int
    claims: tuple[ClaimResult, ...]

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The printed numbers of all claims."""
        return tuple(draw for claim in self.claims for draw in claim.draws)

    @property
    def tally(self) -> Tally:
        """Counts of printed numbers of all claims."""
        return Tally.of_draws(self.draws)

    @property
    def score(self) -> tuple[int, int, int]:
        """The rule of choice as a tuple, larger is better."""
        passed = sum(claim.passed for claim in self.claims)
        return self.tally.consistent, passed, -len(self.reading.departs)


@dataclasses.dataclass(frozen=True)
class ReadingsOutcome(Shown):
    """Readings by claims. `tried`: number of readings of the first round of a search."""

    claims: tuple[str, ...]
    scale: Scale
    seeds: tuple[int, ...]
    results: tuple[ReadingResult, ...]
    chosen: str
    tried: int
    rule: str = RULE
    command: str = ""
    seconds: float = 0.0
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def best(self) -> ReadingResult:
        """The chosen reading."""
        return next(each for each in self.results if each.reading.name == self.chosen)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON data."""
        return to_plain(self, {})

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """Build from `to_json` output."""
        return from_plain(cls, told, {})


@dataclasses.dataclass(frozen=True)
class ReadingsStudy:
    """Readings of claims at a scale, on development seeds.

    `search`: all combinations of the open settings of the claims, by successive halving, instead
    of the named readings.
    """

    claims: tuple[Claim, ...]
    scale: Scale
    seeds: tuple[int, ...]
    search: bool = False
    names: tuple[str, ...] = ()
    command: str = ""

    arrays = False

    def __post_init__(self) -> None:
        for claim in self.claims:
            require(bool(claim.readings), f"{claim.id} has no readings; see `unlazy list claims`.")
        if self.search:
            first, *others = (claim.open_settings for claim in self.claims)
            require(
                bool(first) and all(other == first for other in others),
                "A search needs claims with the same open settings.",
            )

    @property
    def title(self) -> str:
        """The claims."""
        return "readings of " + ", ".join(claim.id for claim in self.claims)

    @property
    def readings(self) -> tuple[str, ...]:
        """Names of the readings that all claims have, in their order."""
        if self.search:
            return tuple(reading.name for reading in product(self.claims[0].open_settings))
        first, *others = ([reading.name for reading in claim.readings] for claim in self.claims)
        common = [name for name in first if all(name in other for other in others)]
        if not common:
            raise BadInput("These claims have no reading in common; compare them one by one.")
        for name in self.names:
            if name not in common:
                raise unknown("reading", name, common)
        return self.names or tuple(common)

    def _claims_under(self, name: str) -> list[Claim]:
        claims = self.claims
        if self.search:
            every = product(claims[0].open_settings)
            claims = tuple(dataclasses.replace(each, readings=every, reading="") for each in claims)
        return [claim.under(name) for claim in claims]

    def rounds(self, store: Store, say: Say = silent) -> Rounds[ReadingsOutcome]:
        """Run all readings, or rounds of successive halving."""
        store.register_rules({claim.id: claim.rule for claim in self.claims})
        names = list(self.readings)
        tried, pairs, results = len(names), dict[str, tuple[Runnable, Record]](), []
        plan = halving(tried, len(self.seeds)) if self.search else [(tried, len(self.seeds))]
        for kept, count in plan:
            names, seeds = names[:kept], self.seeds[:count]
            studies = {
                name: [(claim, claim.arms(self.scale)) for claim in self._claims_under(name)]
                for name in names
            }
            trials = {
                (name, claim.id, arm): each.trials(seeds)
                for name, claims in studies.items()
                for claim, arms in claims
                for arm, each in arms.items()
            }
            found = yield list({t.id: t for each in trials.values() for t in each}.values())
            pairs |= {t.id: (t, found[t.id]) for each in trials.values() for t in each}
            results = [
                ReadingResult(
                    claims[0][0].judged,
                    count,
                    tuple(
                        self._result(claim, arms, name, trials, found, seeds)
                        for claim, arms in claims
                    ),
                )
                for name, claims in studies.items()
            ]
            results.sort(key=lambda each: each.score, reverse=True)
            names = [each.reading.name for each in results]
            if len(plan) > 1:
                say(f"{len(names)} readings on {count} seeds; best so far: {results[0].tally}.")
        order = [*self.readings]
        outcome = ReadingsOutcome(
            tuple(claim.id for claim in self.claims),
            self.scale,
            self.seeds,
            tuple(sorted(results, key=lambda each: order.index(each.reading.name))),
            results[0].reading.name,
            tried,
            command=self.command,
            seconds=sum(record.seconds for _, record in pairs.values()),
            provenance=made_by(pairs.values()),
        )
        self._note(outcome, store, pairs)
        return outcome

    def _result(
        self,
        claim: Claim,
        arms: Mapping[str, Any],
        name: str,
        trials: Mapping[tuple[str, str, str], Sequence[Runnable]],
        found: Records,
        seeds: Sequence[int],
    ) -> ClaimResult:
        records = {
            arm: each.join([found[t.id] for t in trials[name, claim.id, arm]], seeds)
            for arm, each in arms.items()
        }
        checks = judge_checks(claim, self.scale, records)
        counted = [each for each in checks if each.check.counts]
        return ClaimResult(
            claim.id,
            draws(claim.published, records, claim.judged.evaluation, exact=claim.exact),
            judge_numbers(claim, records).reproduced,
            ruling(claim, self.scale, checks)[0],
            sum(each.outcome == "holds" for each in counted),
            len(counted),
        )

    def _note(
        self, outcome: ReadingsOutcome, store: Store, pairs: Mapping[str, tuple[Runnable, Record]]
    ) -> None:
        name = outcome.claims[0] if len(outcome.claims) == 1 else ", ".join(outcome.claims)
        arms = {"all readings": sorted({record.id for _, record in pairs.values()})}
        setting = f"{self.scale}{' search' * self.search}"
        first, count = self.seeds[0], len(self.seeds)
        run = Run("readings", name, setting, first, count, arms, now(), outcome.to_json())
        store.add_run(run)


def readings_study(
    claims: Sequence[Claim],
    scale: Scale,
    *,
    seeds: int = 5,
    first_seed: int = DEVELOPMENT,
    search: bool = False,
    names: Sequence[str] = (),
    command: str = "",
) -> ReadingsStudy:
    """Build the study of readings, on development seeds."""
    require_one_of("`scale`", scale, SCALES)
    require(seeds >= 2, f"A prediction interval needs at least 2 seeds, got {seeds}.")
    last = first_seed + seeds
    require(
        DEVELOPMENT <= first_seed and last <= EVALUATION,
        f"Readings are chosen on development seeds {DEVELOPMENT} to {EVALUATION - 1}, got "
        f"{first_seed} to {last - 1}. The choice is judged on held-out seeds by `reproduce`.",
    )
    chosen = tuple(range(first_seed, last))
    return ReadingsStudy(tuple(claims), scale, chosen, search, tuple(names), command)
