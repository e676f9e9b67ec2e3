"""Partitions as Dask's expressions see them: the one module that uses private parts of Dask.

Dask says of two frames whether their partitions belong together by the expressions that they are
made of. Frames that were made of delayed partitions belong to nothing: a column of them cannot be
assigned to the frame of their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

import dask.dataframe as dd
import pandas as pd
from dask._task_spec import Alias
from dask.dataframe.dask_expr import new_collection
from dask.dataframe.dask_expr._expr import (
    ArrowStringConversion,
    Blockwise,
    Expr,
    are_co_aligned,
)
from dask.dataframe.dask_expr.io import IO
from dask.dataframe.utils import pyarrow_strings_enabled
from dask.delayed import Delayed


def have_one_source(X: dd.DataFrame, other: Any) -> bool:
    """Whether partitions of a frame and another belong together, whatever Dask fuses."""
    is_frame = isinstance(other, dd.Series | dd.DataFrame)
    return is_frame and X.npartitions == other.npartitions and are_co_aligned(X.expr, other.expr)


def map_delayed(
    X: dd.DataFrame, of_part: Callable[[Delayed, int], Delayed], meta: pd.DataFrame | pd.Series
) -> Any:
    """Make a collection that belongs to the rows of a data frame, of several tasks per partition.

    Parameters
    ----------
    X : dask data frame
        Rows.
    of_part : callable
        What to make of a partition and its number.
    meta : data frame or series
        The result of no rows.
    """
    made = _PerPartition(_of_whole_sources(X.expr), _Recipe(of_part, meta, uuid4().hex))
    return new_collection(ArrowStringConversion(made) if pyarrow_strings_enabled() else made)


def _of_whole_sources(frame: Expr) -> Expr:
    """Make a frame of all columns of what it is made of, partition by partition."""
    if isinstance(frame, IO) or not isinstance(frame, Blockwise):
        return _Whole(frame) if frame.ndim else frame
    parts = [_of_whole_sources(own) if isinstance(own, Expr) else own for own in frame.operands]
    return type(frame)(*parts)


def _same(part: Any) -> Any:
    return part


class _Whole(Blockwise):
    """All columns of what is read.

    Dask joins partitions of a read of few columns. If each part of an expression reads its own
    columns, it may then put other rows side by side, or drop some; so all parts read all of them.
    """

    _parameters: ClassVar[list[str]] = ["frame"]
    operation = staticmethod(_same)


@dataclass(frozen=True)
class _Recipe:
    """What is made of partitions; equal recipes have equal names."""

    of_part: Callable[[Delayed, int], Delayed]
    meta: pd.DataFrame | pd.Series
    name: str

    def __dask_tokenize__(self) -> str:
        return self.name


class _PerPartition(Blockwise):
    """Something for each partition of a frame."""

    _parameters: ClassVar[list[str]] = ["frame", "recipe"]

    @property
    def _meta(self) -> Any:
        return self.recipe.meta

    def _lower(self) -> Expr:
        return _Tasks(self.frame, self.recipe)  # which Dask does not fuse into a single task


class _Tasks(Expr):
    """The tasks of all partitions."""

    _parameters: ClassVar[list[str]] = ["frame", "recipe"]

    @property
    def _meta(self) -> Any:
        return self.recipe.meta

    def _divisions(self) -> Any:
        return self.frame.divisions

    def _layer(self) -> dict[Any, Any]:
        tasks: dict[Any, Any] = {}
        for b in range(self.frame.npartitions):
            source = (self.frame._name, b)
            made = self.recipe.of_part(Delayed(source, {source: None}), b)
            tasks |= dict(made.dask)
            del tasks[source]  # it is the frame's
            tasks[self._name, b] = Alias((self._name, b), made.key)
        return tasks
