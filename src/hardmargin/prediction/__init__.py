"""What fitted models predict with, in plain numpy."""

from hardmargin.prediction.machines import Machines
from hardmargin.prediction.model import Model

__all__ = ["Machines", "Model"]
