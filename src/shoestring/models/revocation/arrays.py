"""Arrays inside saved models: plain numbers with their shape, nothing that could execute when it is read."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from shoestring.errors import DataError
from shoestring.kernel.types import Fact

Kind = Literal["<f8", "<f4", "<i4"]


class Array(Fact, frozen=True, kw_only=True):
    """The bytes of an array; in JSON they are base64."""

    kind: Kind
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.shape) or math.prod(self.shape) * int(self.kind[-1]) != len(self.data):
            raise DataError(f"an array of shape {self.shape} does not have {len(self.data)} bytes")

    @staticmethod
    def of(values: npt.ArrayLike, kind: Kind = "<f8") -> Array:
        array = np.ascontiguousarray(np.asarray(values).astype(kind))
        return Array(kind=kind, shape=array.shape, data=array.tobytes())

    def read(self) -> npt.NDArray[np.generic]:
        found: npt.NDArray[np.generic] = np.frombuffer(self.data, dtype=self.kind).reshape(self.shape)
        return found

    def floats(self) -> npt.NDArray[np.float64]:
        return self.read().astype(np.float64)

    def whole(self) -> npt.NDArray[np.int64]:
        return self.read().astype(np.int64)
