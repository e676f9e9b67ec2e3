"""An estimator has one fitted model at a time, whatever other threads do with it.

1. A fit runs on a twin, which has the parameters and attributes of the estimator. At its end, the
   twin's attributes replace those of the estimator in one step. A fit that fails changes nothing.
2. A method that reads the model runs on a snapshot, which shares the attributes that the estimator
   has at that moment. No fit changes these: it makes others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

Estimator = TypeVar("Estimator")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def in_one_step(
    fit: Callable[Concatenate[Estimator, Parameters], Result],
) -> Callable[Concatenate[Estimator, Parameters], Result]:
    """Let a method that fits replace the model in one step, when it returns."""

    @wraps(fit)
    def fit_twin(self: Estimator, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        before = vars(self).copy()
        twin = _with_attributes(self, before.copy())
        result = fit(twin, *args, **kwargs)
        # Parameters may have been set meanwhile.
        own = {name: value for name, value in vars(self).copy().items() if not is_fitted_name(name)}
        found = {
            name: value
            for name, value in vars(twin).items()
            if is_fitted_name(name) or name not in before or before[name] is not value
        }
        self.__dict__ = {**own, **found}
        return self if result is twin else result  # type: ignore[return-value]

    return fit_twin


def on_one_model(
    method: Callable[Concatenate[Estimator, Parameters], Result],
) -> Callable[Concatenate[Estimator, Parameters], Result]:
    """Let a method see one model from beginning to end; a generator, until it is exhausted."""

    @wraps(method)
    def read(self: Estimator, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        return method(snapshot(self), *args, **kwargs)

    return read


def snapshot(estimator: Estimator) -> Estimator:
    """Make an object with the attributes that an estimator has now; they are not copied."""
    return _with_attributes(estimator, vars(estimator))


class Projector(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Base of the transformers: the columns of an output and their names are those of one model."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)  # makes `transform` return data frames where asked to
        for name, marked in (("transform", on_one_model), ("fit_transform", in_one_step)):
            if name in vars(cls) or Projector in cls.__bases__:
                setattr(cls, name, marked(getattr(cls, name)))


def is_fitted_name(name: str) -> bool:
    """Whether an attribute belongs to the fitted model."""
    return name.endswith("_")


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return the attributes that belong to the fitted model; they are not copied."""
    return {name: value for name, value in vars(estimator).items() if is_fitted_name(name)}


def _with_attributes(estimator: Estimator, attributes: dict[str, Any]) -> Estimator:
    other = object.__new__(type(estimator))
    other.__dict__ = attributes
    return other
