"""Cells: a tree of cuts divides the rows, and each part has kernel machines of its own.

The cost of kernel machines grows with the square of the number of rows; that of cells, which have a
bounded number of rows, only in proportion. See ``cuts`` (the trees), ``machines`` (one cell),
``layer`` (one tree with all its cells), ``experts`` (trees and a vote on a sample, mixed) and
``training`` (how a fit's plan becomes experts).
"""

from hardmargin.cells.cuts import Cuts, Kind, find_cuts
from hardmargin.cells.layer import Layer, LayerInTraining
from hardmargin.cells.machines import CellRows, CellRules

__all__ = ["CellRows", "CellRules", "Cuts", "Kind", "Layer", "LayerInTraining", "find_cuts"]
