"""Session of one open page: its run and its threads, which stop when the page is closed.

The page reports the frame that it shows. Training leads it by at most `AHEAD` frames, so that a
pause stops it and a changed value applies from the frame shown. Snapshots of all frames are kept
within `MEMORY`, so that the run can be rewound.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import msgspec

from unlazy.core.errors import BadInput, UnlazyError
from unlazy.lab.engines.local import LocalEngine, use_compilation_cache
from unlazy.lab.run import run_one
from unlazy.lab.store import opened
from unlazy.learners.base import Learner
from unlazy.play.baselines import Abandoned, Abandoning, FinalErrors, baseline, watched
from unlazy.play.frames import FrameBuffer
from unlazy.play.scenario import InvalidValue, Preset, Scenario

#: Maximum number of frames by which training leads the page.
AHEAD = 30
#: Maximum size of all snapshots, in bytes.
MEMORY = 512 << 20

Send = Callable[[dict[str, Any]], None]


class Command(msgspec.Struct):
    """A message of the page: what to do, the frame shown, and the values of the parameters."""

    do: str
    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    preset: str = ""
    values: dict[str, str | bool | int | float] = {}
    field: str | None = None
    from_here: bool = False


class Session:
    """Connection of one page: `submit` takes commands, `send` receives messages, in any thread.

    `store` caches the errors of the baselines; by default it is temporary.
    """

    def __init__(self, presets: dict[str, Preset], send: Send, store: Path | None = None) -> None:
        self.presets, self._send, self._store = presets, send, store
        self.stopped = threading.Event()
        self._inbox: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="baselines")
        self._buffer: FrameBuffer | None = None
        self._preset: Preset | None = None
        self._run = self._seen = self._made = 0
        self._paused, self._working, self._solving = True, False, False
        self._thread = threading.Thread(target=self._work, name="training", daemon=True)

    def start(self) -> None:
        """Start processing commands."""
        self._thread.start()

    def submit(self, command: dict[str, Any]) -> None:
        """Queue a command of the page."""
        self._inbox.put(command)

    def stop(self, wait: bool = True) -> None:
        """Stop after the current training segment and the current trial."""
        self.stopped.set()
        self._inbox.put(None)
        self._pool.shutdown(wait=wait, cancel_futures=True)
        if wait:
            self._thread.join()

    @property
    def busy(self) -> bool:
        """Whether a learner or baseline is being trained."""
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
            except InvalidValue as error:
                self._send({"type": "refused", "field": error.field, "message": str(error)})
            except UnlazyError as error:
                self._send({"type": "refused", "field": None, "message": str(error)})
            except Exception as error:  # reported on the page
                self._paused = True
                self._send({"type": "broken", "message": f"{type(error).__name__}: {error}"})
            finally:
                self._working = False

    def _obey(self, command: dict[str, Any]) -> None:
        try:
            msgspec.convert(command, Command)
        except msgspec.ValidationError as error:
            raise BadInput(f"This is not a message of the page: {error}.") from None
        match command["do"]:
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
                raise BadInput(f"Unknown command {other!r}.")

    def _found(self, command: dict[str, Any]) -> tuple[Preset, Scenario]:
        name = command.get("preset")
        if name not in self.presets:
            raise BadInput(f"Unknown preset {name!r}. Presets: {', '.join(self.presets)}.")
        preset = self.presets[name]
        return preset, preset.scenario(command.get("values", {}), command.get("field"))

    def _try(self, command: dict[str, Any]) -> None:
        """Check the values, and send the commands."""
        _, scenario = self._found(command)
        self._send({"type": "fits", "commands": scenario.commands})

    def _start(self, command: dict[str, Any]) -> None:
        # Also counts refused runs, as the page does: messages of earlier runs are then ignored.
        self._run += 1
        self._preset, scenario = self._found(command)
        self._send({"type": "status", "run": self._run, "text": "Initializing …"})
        self._buffer = buffer = FrameBuffer(scenario)
        self._seen, self._made, self._paused = 0, 1, False
        first = buffer.open()
        self._announce(scenario)
        self._send({"type": "frame", "run": self._run, **first})
        if len(scenario.watched) > 1:
            self._send(
                {"type": "status", "run": self._run, "text": "Initializing the other learners …"}
            )
            buffer.complete()
            self._send({"type": "frame", "run": self._run, **buffer.frame(0)})
        self._send({"type": "status", "run": self._run, "text": "Training."})
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
                "fixed": [name for name in scenario.watched if name in scenario.fixed],
                "baselines": {name: None for name in scenario.baselines},
                "baseline_n": scenario.baseline_n,
                "n": scenario.n,
                "seeds": list(scenario.seeds),
                "count": self._buffer.count,
                "last": self._buffer.steps[-1],
                "unit": metric.unit,
                "walkthrough": [list(line) for line in self._preset.walkthrough],
                "commands": scenario.commands,
            }
        )

    def _train(self) -> None:
        assert self._buffer is not None
        frame = self._buffer.next(self._made)
        self._made += 1
        self._send({"type": "frame", "run": self._run, **frame})
        held = sum(snapshot.bytes for snapshot in self._buffer.snapshots[-1].values()) * len(
            self._buffer.snapshots
        )
        if held > MEMORY:
            self._drop_snapshots()
        if self._made == self._buffer.count:
            self._send({"type": "done", "run": self._run})

    def _drop_snapshots(self) -> None:
        """Drop every second old snapshot except the first."""
        assert self._buffer is not None
        snapshots = self._buffer.snapshots
        kept = [
            position
            for position, snapshot in enumerate(snapshots)
            if snapshot and 0 < position < len(snapshots) - AHEAD
        ]
        for position in kept[1::2]:
            snapshots[position] = {}

    def _rewind(self, index: int) -> None:
        """Return to the last kept snapshot at or before `index`."""
        assert self._buffer is not None
        position = max(
            position
            for position in range(min(index, self._made - 1) + 1)
            if self._buffer.snapshots[position]
        )
        self._made = position + 1
        self._seen = min(self._seen, position)
        self._send({"type": "rewound", "run": self._run, "index": position})

    def _go(self, command: dict[str, Any]) -> None:
        """Resume training, from frame `index` if given."""
        if self._buffer is None:
            raise BadInput("No run to resume. Press Start.")
        if (
            "index" in command
            and int(command["index"]) < self._made - 1
            and command.get("from_here")
        ):
            self._rewind(int(command["index"]))
        self._paused = False

    def _change(self, command: dict[str, Any]) -> None:
        """Apply other values from the frame shown; restart if they need another network."""
        preset, scenario = self._found(command)
        if self._buffer is None or preset is not self._preset or not self._buffer.snapshots:
            return self._start(command)
        self._rewind(int(command.get("index", self._made - 1)))
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
        """Fit the baselines in the background, and send their errors."""
        if scenario.baselines:
            self._pool.submit(self._in_background, self._solve, scenario, self._run)

    def _in_background(self, job: Callable[..., None], *arguments: Any) -> None:
        self._solving = True
        try:
            job(*arguments)
        except UnlazyError as error:
            self._send({"type": "background-error", "message": str(error)})
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
        """Yield a function that runs studies; it ends the block once `wanted` returns False."""
        callback = Abandoning(lambda: not self.stopped.is_set() and wanted())
        with contextlib.suppress(Abandoned), opened(self._store) as store:
            engine = LocalEngine()
            yield lambda study: run_one(study, store, engine, callback=callback)

    def _gap(self, command: dict[str, Any]) -> None:
        """Measure the first watched learner and the baselines at each value of a parameter."""
        preset, _ = self._found(command)
        if preset.gap is None:
            raise BadInput(f"{preset.id} has no parameter to vary.")
        self._pool.submit(
            self._in_background, self._grow, preset, dict(command.get("values", {})), self._run
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
