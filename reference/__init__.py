"""What is right: the MLA host KV pool and its transfers, stated without SGLang.

Depends on torch, numpy, ml-dtypes and gguf alone; knows nothing of SGLang, pytest or the harness.
"""

from __future__ import annotations

from reference.geometry import Component, PoolGeometry
from reference.layouts import LAYOUTS, HostLayout, Plane, host_layout
from reference.support import IO_BACKENDS, Refused, Works, decide
from reference.where import Place, where

__all__ = [
    "IO_BACKENDS",
    "LAYOUTS",
    "Component",
    "HostLayout",
    "Place",
    "Plane",
    "PoolGeometry",
    "Refused",
    "Works",
    "decide",
    "host_layout",
    "where",
]
