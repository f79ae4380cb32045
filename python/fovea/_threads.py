# SPDX-License-Identifier: Apache-2.0
"""How many threads calls use."""

from __future__ import annotations

from ._errors import usage_error

_MOST = 1024
_chosen: int | None = None


def set_threads(n: int) -> None:
    """The threads of all later calls that do not say `threads=`. 0: all cores, as at the start."""
    global _chosen
    _chosen = checked(n)


def checked(n: int) -> int:
    """The number itself. Raises UsageError unless it is a whole number from 0 to 1024."""
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= _MOST:
        raise usage_error(f"threads: {n!r} is not a whole number from 0 (all cores) to {_MOST}",
                          "give the number of threads to work on", "E0203")
    return n


def threads_of(n: int | None, otherwise: int = 0) -> int:
    """What a call uses that was given `n`: that, or what was chosen, or `otherwise`."""
    if n is not None:
        return checked(n)
    return otherwise if _chosen is None else _chosen
