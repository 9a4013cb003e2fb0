"""Deprecated names: accepted for one release, with a warning that names the present one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., Any])


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that a name was replaced."""
    warnings.warn(f"{old} is now called {new}.", FutureWarning, stacklevel=stacklevel)


def renamed_parameters(**names: str) -> Callable[[C], C]:
    """Decorate a function or a class so that keywords under former names are accepted.

    `names` maps each former name to the present one.
    """

    def decorate(target: C) -> C:
        function: Any = vars(target)["__init__"] if isinstance(target, type) else target

        @functools.wraps(function)
        def accepting(*args: Any, **kwargs: Any) -> Any:
            for old in names.keys() & kwargs.keys():
                warn_renamed(f"{old}=", f"{names[old]}=")
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        if isinstance(target, type):
            target.__init__ = accepting  # type: ignore[misc]
            return target
        return accepting  # type: ignore[return-value]

    return decorate
