"""A session: one open page, the run it watches, and the threads that work for it. When the page
closes, the work stops.

The page says which frame it shows; training stays at most `AHEAD` frames before it, so that a pause
costs nothing and a changed number acts from the frame that is seen. Every frame can be gone back
to: the networks of all of them are kept, as far as `MEMORY` allows.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from unlazy.core.errors import BadInput, UnlazyError
from unlazy.lab.engines.local import LocalEngine, use_compilation_cache
from unlazy.lab.run import run_one
from unlazy.lab.store import opened
from unlazy.learners.base import Learner
from unlazy.play.baselines import Abandoned, Abandoning, FinalErrors, baseline, watched
from unlazy.play.frames import FrameBuffer
from unlazy.play.scenario import Preset, Scenario, WrongNumber

#: Frames that training may be ahead of what is seen.
AHEAD = 30
#: Bytes of networks that are kept to go back to.
MEMORY = 512 << 20

Send = Callable[[dict[str, Any]], None]


class Session:
    """Commands come in by `tell`, messages go out by `send`; both from any thread.

    Errors of rivals are kept in `store`, or in a temporary one.
    """

    def __init__(self, presets: dict[str, Preset], send: Send, store: Path | None = None) -> None:
        self.presets, self._send, self._store = presets, send, store
        self.stopped = threading.Event()
        self._inbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="baselines")
        self._buffer: FrameBuffer | None = None
        self._preset: Preset | None = None
        self._run = self._seen = self._made = 0
        self._paused, self._working, self._solving = True, False, False
        self._thread = threading.Thread(target=self._work, name="training", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def tell(self, command: dict[str, Any]) -> None:
        """Hand over what the page wants."""
        self._inbox.put(command)

    def stop(self, wait: bool = True) -> None:
        """End all work: at the end of the piece that is being trained, and of the trial that is
        being solved.
        """
        self.stopped.set()
        self._inbox.put(None)
        self._beside.shutdown(wait=wait, cancel_futures=True)
        if wait:
            self._thread.join()

    @property
    def busy(self) -> bool:
        """Whether anything is being trained or solved."""
        return self._working or self._solving

    def _work(self) -> None:
        use_compilation_cache()
        while not self.stopped.is_set():
            wait = (
                self._buffer is None
                or self._paused
                or self._made >= min(self._buffer.count, self._seen + AHEAD)
            )
            try:
                command = self._inbox.get(block=wait)
            except queue.Empty:
                command = {"do": "train"}
            if command is None:
                return
            try:
                self._working = True
                self._obey(command)
            except WrongNumber as error:
                self._send({"type": "refused", "field": error.field, "message": str(error)})
            except UnlazyError as error:
                self._send({"type": "refused", "field": None, "message": str(error)})
            except Exception as error:  # the page must hear of a defect
                self._paused = True
                self._send({"type": "broken", "message": f"{type(error).__name__}: {error}"})
            finally:
                self._working = False

    def _obey(self, command: dict[str, Any]) -> None:
        match command.get("do"):
            case "train":
                self._train()
            case "seen":
                self._seen = int(command["index"])
            case "pause":
                self._paused = True
            case "go":
                self._go(command)
            case "start":
                self._start(command)
            case "change":
                self._change(command)
            case "try":
                self._try(command)
            case "gap":
                self._gap(command)
            case other:
                raise BadInput(f"There is no command {other!r} here.")

    def _found(self, command: dict[str, Any]) -> tuple[Preset, Scenario]:
        name = command.get("preset")
        if name not in self.presets:
            raise BadInput(f"There is no preset {name!r}. Known: {', '.join(self.presets)}.")
        preset = self.presets[name]
        return preset, preset.scenario(command.get("values", {}), command.get("field"))

    def _try(self, command: dict[str, Any]) -> None:
        """Whether numbers go together, and the command that does it."""
        _, scenario = self._found(command)
        self._send({"type": "fits", "commands": scenario.commands})

    def _start(self, command: dict[str, Any]) -> None:
        # also for one that is refused: the page counts what it asked for, and hears no more of the
        # run before
        self._run += 1
        self._preset, scenario = self._found(command)
        self._send(
            {"type": "status", "run": self._run, "text": "drawing the task and the network …"}
        )
        self._buffer = reel = FrameBuffer(scenario)
        self._seen, self._made, self._paused = 0, 1, False
        first = reel.open()
        self._announce(scenario)
        self._send({"type": "frame", "run": self._run, **first})
        if len(scenario.watched) > 1:
            self._send(
                {"type": "status", "run": self._run, "text": "getting the other learners ready …"}
            )
            reel.complete()
            self._send({"type": "frame", "run": self._run, **reel.frame(0)})
        self._send({"type": "status", "run": self._run, "text": "training"})
        self._baselines(scenario)

    def _announce(self, scenario: Scenario) -> None:
        assert self._preset is not None and self._buffer is not None
        metric = scenario.family.metric
        self._send(
            {
                "type": "begun",
                "run": self._run,
                "preset": self._preset.id,
                "learners": list(scenario.watched),
                "baselines": {name: None for name in scenario.baselines},
                "baseline_n": scenario.baseline_n,
                "n": scenario.n,
                "seeds": list(scenario.seeds),
                "count": self._buffer.count,
                "last": self._buffer.steps[-1],
                "unit": metric.unit,
                "story": [list(line) for line in self._preset.walkthrough],
                "commands": scenario.commands,
            }
        )

    def _train(self) -> None:
        assert self._buffer is not None
        frame = self._buffer.next(self._made)
        self._made += 1
        self._send({"type": "frame", "run": self._run, **frame})
        held = sum(moment.bytes for moment in self._buffer.moments[-1].values()) * len(
            self._buffer.moments
        )
        if held > MEMORY:  # the oldest but the first go; winding back ends there
            self._forget()
        if self._made == self._buffer.count:
            self._send({"type": "done", "run": self._run})

    def _forget(self) -> None:
        assert self._buffer is not None
        moments = self._buffer.moments
        kept = [
            place
            for place, moment in enumerate(moments)
            if moment and 0 < place < len(moments) - AHEAD
        ]
        for place in kept[1::2]:
            moments[place] = {}

    def _wind_back(self, index: int) -> None:
        """To a frame whose networks are still there, at or before the one that was asked for."""
        assert self._buffer is not None
        place = max(
            place for place in range(min(index, self._made - 1) + 1) if self._buffer.moments[place]
        )
        self._made = place + 1
        self._seen = min(self._seen, place)
        self._send({"type": "rewound", "run": self._run, "index": place})

    def _go(self, command: dict[str, Any]) -> None:
        """Go on, from the frame that is seen."""
        if self._buffer is None:
            raise BadInput("Nothing is running: press start first.")
        if (
            "index" in command
            and int(command["index"]) < self._made - 1
            and command.get("from_here")
        ):
            self._wind_back(int(command["index"]))
        self._paused = False

    def _change(self, command: dict[str, Any]) -> None:
        """Other numbers from the present frame on; from the start if the network is another."""
        preset, scenario = self._found(command)
        if self._buffer is None or preset is not self._preset or not self._buffer.moments:
            return self._start(command)
        self._wind_back(int(command.get("index", self._made - 1)))
        if not self._buffer.change(scenario):
            return self._start(command)
        self._send(
            {
                "type": "changed",
                "run": self._run,
                "commands": scenario.commands,
                "index": self._made - 1,
            }
        )
        self._baselines(scenario)
        return None

    def _baselines(self, scenario: Scenario) -> None:
        """Solve the rivals beside the training, and say what they reach."""
        if scenario.baselines:
            self._beside.submit(self._aside, self._solve, scenario, self._run)

    def _aside(self, job: Callable[..., None], *arguments: Any) -> None:
        self._solving = True
        try:
            job(*arguments)
        except UnlazyError as error:
            self._send({"type": "aside", "message": str(error)})
        except Exception as error:
            self._send({"type": "broken", "message": f"{type(error).__name__}: {error}"})
        finally:
            self._solving = False

    def _solve(self, scenario: Scenario, run: int) -> None:
        with self._errors(lambda: run == self._run) as errors:
            for name, learner in scenario.baselines.items():
                found = errors(baseline(scenario, learner)) if _suits(learner, scenario) else []
                self._send({"type": "baseline", "run": run, "name": name, "errors": found})

    @contextlib.contextmanager
    def _errors(
        self, wanted: Callable[[], bool] = lambda: True
    ) -> Iterator[Callable[[FinalErrors], list[float | None]]]:
        """Yield a function that runs studies; it ends the block if nobody waits any more."""
        callback = Abandoning(lambda: not self.stopped.is_set() and wanted())
        with contextlib.suppress(Abandoned), opened(self._store) as store:
            engine = LocalEngine()
            yield lambda study: run_one(study, store, engine, callback=callback)

    def _gap(self, command: dict[str, Any]) -> None:
        """How the gap grows: the first watched learner and the rivals at each value of a number."""
        preset, _ = self._found(command)
        if preset.gap is None:
            raise BadInput(f"{preset.id} has no number along which a gap is drawn.")
        self._beside.submit(
            self._aside, self._grow, preset, dict(command.get("values", {})), self._run
        )

    def _grow(self, preset: Preset, values: dict[str, Any], run: int) -> None:
        assert preset.gap is not None
        with self._errors() as errors:
            for value in preset.gap.values:
                scenario = preset.scenario(values | {preset.gap.field: value})
                name, learner = next(iter(scenario.watched.items()))
                at = {"type": "gap", "run": run, "at": str(value)}
                found = errors(watched(scenario, learner))
                self._send(at | {"name": name, "n": scenario.n, "errors": found})
                for name, learner in scenario.baselines.items():
                    found = errors(baseline(scenario, learner)) if _suits(learner, scenario) else []
                    self._send(at | {"name": name, "n": scenario.baseline_n, "errors": found})
            self._send({"type": "gap-done", "run": run})


def _suits(learner: Learner, scenario: Scenario) -> bool:
    return learner.suits(scenario.family.outputs)
