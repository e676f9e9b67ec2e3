"""What fitted models predict with, in plain numpy."""

from hardmargin.prediction.machines import Machines

__all__ = ["Machines"]
