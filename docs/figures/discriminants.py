"""Test rows on the first two directions of one class, under two constraints."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from hardmargin import MarginDiscriminantAnalysis

BLUE, GREY = "#2f6f9f", "#8a929c"
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)

figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.0), layout="constrained")
for ax, constraint in zip(axes, ("orthogonal", "uncorrelated-centred"), strict=True):
    analysis = MarginDiscriminantAnalysis(2, constraint=constraint, random_state=0)
    Z = analysis.fit(X_train, y_train == 8).transform(X_test)
    correlation = np.corrcoef(analysis.transform(X_train).T)[0, 1]
    for is_eight, colour, label in ((False, GREY, "other digits"), (True, BLUE, "eights")):
        rows = Z[(y_test == 8) == is_eight]
        ax.scatter(*rows.T, s=9, color=colour, alpha=0.7, linewidths=0, label=label)
    ax.axvline(-analysis.intercepts_[0], color="black", linewidth=0.8, linestyle="--")
    ax.set_title(f"{constraint}: correlation {correlation:+.2f}", fontsize=8.5)
    ax.set(xlabel="first direction", ylabel="second direction")
axes[0].legend(frameon=False)
