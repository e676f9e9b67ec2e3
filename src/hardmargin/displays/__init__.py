"""Pictures of fitted models, in the form of scikit-learn's displays.

Each has ``from_estimator``, which draws, and keeps its numbers, so that ``plot(ax=...)`` can draw
them again elsewhere:

>>> from sklearn.datasets import load_breast_cancer
>>> from hardmargin import EnsembleSVC
>>> from hardmargin.displays import RelevanceDisplay
>>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
>>> display = RelevanceDisplay.from_estimator(EnsembleSVC().fit(X, y), n_columns=5)
>>> len(display.relevance)
5
"""

from hardmargin.displays.discriminant import DiscriminantDisplay
from hardmargin.displays.held_out_path import HeldOutPathDisplay
from hardmargin.displays.margins import MarginDistributionDisplay
from hardmargin.displays.regularization_path import RegularizationPathDisplay
from hardmargin.displays.relevance import RelevanceDisplay

__all__ = [
    "DiscriminantDisplay",
    "HeldOutPathDisplay",
    "MarginDistributionDisplay",
    "RegularizationPathDisplay",
    "RelevanceDisplay",
]
