"""Constraints on the parameters of estimators."""

from __future__ import annotations

from collections.abc import Iterable

from sklearn.utils._param_validation import StrOptions


class Choice(StrOptions):
    """Strings allowed for a parameter; error messages list them in alphabetical order.

    Examples
    --------
    >>> from hardmargin.estimators._base.options import Choice
    >>> print(Choice({"scale", "cv"}))
    a str among {'cv', 'scale'}
    """

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(set(names))

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, sorted(self.options)))}}}"
