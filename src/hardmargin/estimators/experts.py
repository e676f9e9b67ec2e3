"""Where files of earlier versions look for types that have moved."""

from hardmargin.cells.experts import Experts as Experts
from hardmargin.cells.experts import SampleVote as Whole

__all__ = ["Experts", "Whole"]
