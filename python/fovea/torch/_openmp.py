# SPDX-License-Identifier: Apache-2.0
"""The threads of PyTorch, for our calls.

After each of its operations, a thread of OpenMP spins for milliseconds, on a core that a thread of ours would want.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch

from .. import _fovea

_is_available: Any = torch.backends.openmp.is_available


def use_threads_of_torch() -> None:
    """Lets calls run on them, if PyTorch works by OpenMP."""
    if not _is_available():
        return
    loaded = ctypes.CDLL(torch._C.__file__)  # with all that it is linked to, among it PyTorch's OpenMP
    names = ("GOMP_parallel", "omp_get_max_threads")
    if all(hasattr(loaded, name) for name in names):
        parallel, most_threads = (_address(getattr(loaded, name)) for name in names)
        _fovea.use_openmp(parallel, most_threads)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
