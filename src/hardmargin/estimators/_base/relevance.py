"""The relevance of the columns, as classifiers show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hardmargin.kernels import FloatArray


class RelevanceMixin:
    """Attributes of classifiers whose columns may be scaled by relevance."""

    if TYPE_CHECKING:  # of the classifier
        n_features_in_: int

        @property
        def _origins(self) -> NDArray[np.intp]: ...

    #: What a fit needs to scale columns by their relevance, as the end of a sentence.
    _relevance_needs: ClassVar[str]

    def _store_relevance(self, relevance: FloatArray | None) -> None:
        """Keep the relevance of the columns that kernels see, and of the input columns."""
        if relevance is None:
            return
        self.encoded_relevance_ = relevance
        self.relevance_ = np.zeros(self.n_features_in_)
        np.maximum.at(self.relevance_, self._origins, relevance)

    @property
    def feature_importances_(self) -> FloatArray:
        """Relevance of the columns, as shares that sum to one."""
        check_is_fitted(self)
        if not hasattr(self, "relevance_"):
            raise AttributeError(
                f"This {type(self).__name__} has no feature_importances_, since it scaled no "
                f"columns by their relevance. That needs {self._relevance_needs}."
            )
        return np.asarray(self.relevance_ / self.relevance_.sum())
