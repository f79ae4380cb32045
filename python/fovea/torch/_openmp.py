# SPDX-License-Identifier: Apache-2.0
"""The threads of PyTorch, for our calls.

After each of its operations, a thread of OpenMP spins for milliseconds, on a core that a thread of ours would want.
"""

from __future__ import annotations

import ctypes
import os
import re
from pathlib import Path
from typing import Any

import torch

from .. import _fovea

_STACK = 1 << 20  # bytes, of a thread

_is_available: Any = torch.backends.openmp.is_available


def use_threads_of_torch() -> None:
    """Lets calls run on them, if PyTorch works by OpenMP. Not in a fork of another program, whose threads are gone
    though its library believes in them; nor if they have been given little memory for their stacks."""
    if not _is_available() or _is_fork() or _has_small_stacks():
        return
    loaded = ctypes.CDLL(torch._C.__file__)  # with all that it is linked to, among it PyTorch's OpenMP
    names = ("GOMP_parallel", "omp_get_max_threads", "omp_get_thread_num")
    if all(hasattr(loaded, name) for name in names):
        parallel, most_threads, thread = (_address(getattr(loaded, name)) for name in names)
        _fovea.use_openmp(parallel, most_threads, thread)


def _is_fork() -> bool:
    forked_without_exec = 0x40  # PF_FORKNOEXEC of Linux
    flags = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[6]
    return int(flags) & forked_without_exec != 0


def _has_small_stacks() -> bool:
    asked = os.environ.get("OMP_STACKSIZE", os.environ.get("GOMP_STACKSIZE", ""))
    found = re.fullmatch(r"(\d+) *([bkmg]?)", asked.strip().lower())
    units = {"b": 1, "": 1 << 10, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    return found is not None and int(found[1]) * units[found[2]] < _STACK


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
