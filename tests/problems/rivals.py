"""Classifiers that cannot be measured, in a module that other processes import quickly."""

import time

import numpy as np


class Slow:
    def __init__(self, *_):
        pass

    def fit(self, X, y):
        time.sleep(60)


class Broken(Slow):
    def fit(self, X, y):
        raise ValueError("cannot do that")


class Grouped(Slow):
    def set_params(self, cv):
        self.cv = cv

    def fit(self, X, y, groups):
        raise ValueError(f"{self.cv.n_splits} folds of groups {np.unique(groups)}")
