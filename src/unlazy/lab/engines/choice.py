"""Engines by name."""

from __future__ import annotations

from unlazy.core.errors import BadInput, require, unknown
from unlazy.lab.engines.base import Engine
from unlazy.lab.engines.local import LocalEngine

#: Addresses of running Dask clusters are also names. `tcp://` is refused, with the reason.
ENGINES = ("local", "processes", "dask", "slurm")
ADDRESSES = ("tls://", "insecure+tcp://", "tcp://")


def engine_named(
    name: str = "local",
    *,
    memory: int | None = None,
    workers: int | None = None,
    slurm: str = "",
    store: str | None = None,
) -> Engine:
    """Return the engine of a name.

    `memory`: bytes per program; `workers`: their number; `slurm`: resources; `store`: path of the
    store, next to which SLURM jobs keep their files.
    """
    require(
        workers is None or name in ENGINES[1:],
        f"The engine {name} has no workers; remove --workers.",
    )
    require(
        not slurm or name == "slurm",
        "--slurm requires --engine slurm.",
    )
    if name == "local":
        return LocalEngine(memory)
    if name == "processes":
        from unlazy.lab.engines.pools.processes import process_engine

        return process_engine(workers, memory)
    if name == "dask" or name.startswith(ADDRESSES):
        from unlazy.lab.engines.pools.cluster import dask_engine

        return dask_engine(None if name == "dask" else name, workers, memory)
    if name == "slurm":
        from unlazy.lab.engines.pools.slurm import slurm_engine

        if store is None:
            raise BadInput(
                "The SLURM engine keeps its files next to a store; name one with --store."
            )
        return slurm_engine(store, resources=slurm, workers=workers, memory=memory)
    raise BadInput(
        f"{unknown('engine', name, ENGINES)} A running Dask cluster is named tls://host:port."
    )
