"""Engines by name."""

from __future__ import annotations

from unlazy.core.errors import BadInput, require, unknown
from unlazy.lab.engines.base import Engine
from unlazy.lab.engines.local import LocalEngine

#: `tcp://host:port` and `tls://host:port` are names too: of a Dask cluster that is already there.
ENGINES = ("local", "processes", "dask", "slurm")


def engine_named(
    name: str = "local",
    *,
    memory: int | None = None,
    workers: int | None = None,
    slurm: str = "",
    store: str | None = None,
) -> Engine:
    """The engine of that name.

    `memory`: bytes of a program; `workers`: how many; `slurm`: resources; `store`: beside which
    SLURM works.
    """
    require(
        workers is None or name in ENGINES[1:],
        f"The engine {name} has no workers to count: leave --workers away.",
    )
    require(
        not slurm or name == "slurm",
        "--slurm gives resources to --engine slurm: name that engine, too.",
    )
    if name == "local":
        return LocalEngine(memory)
    if name == "processes":
        from unlazy.lab.engines.pools.processes import process_engine

        return process_engine(workers, memory)
    if name == "dask" or name.startswith(("tcp://", "tls://")):
        from unlazy.lab.engines.pools.cluster import dask_engine

        return dask_engine(None if name == "dask" else name, workers, memory)
    if name == "slurm":
        from unlazy.lab.engines.pools.slurm import slurm_engine

        if store is None:
            raise BadInput("The SLURM engine keeps its files beside a store: name one.")
        return slurm_engine(store, resources=slurm, workers=workers, memory=memory)
    raise BadInput(
        f"{unknown('engine', name, ENGINES)} A Dask cluster that is there already is named "
        "tcp://host:port."
    )
