"""How rows are scaled before kernels see them."""

from hardmargin.scaling.columns import Scaling, find_scaling
from hardmargin.scaling.mixed import MixedScaling, find_mixed_scaling, find_row_scaling

__all__ = ["MixedScaling", "Scaling", "find_mixed_scaling", "find_row_scaling", "find_scaling"]
