"""What it costs to keep fewer support rows: on new rows, chosen one by one or at random."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split

from hardmargin import EnsembleSVC, compress

BLUE, GREY = "#2f6f9f", "#8a929c"
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y == 8, train_size=700, random_state=0)
clf = EnsembleSVC(kernel="rbf", gamma="spread", standardize=False).fit(X_train, y_train)
fitted, before = clf.decision_function(X_train), clf.decision_function(X_test)


def refitted_at_random(n_support):
    """Decisions of test rows if random rows are kept, with the best coefficients for them."""
    kept = X_train[np.random.default_rng(0).permutation(len(X_train))[:n_support]]
    on_train, on_test = (rbf_kernel(rows, kept, gamma=clf.gamma_) for rows in (X_train, X_test))
    return Ridge(alpha=1e-6).fit(on_train, fitted).predict(on_test)


sizes = [12, 18, 25, 35, 50, 70, 100]
with warnings.catch_warnings():  # it warns where many predictions change
    warnings.simplefilter("ignore", UserWarning)
    chosen = [compress(clf, n).decision_function(X_test) for n in sizes]
drawn = [refitted_at_random(n) for n in sizes]

figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.7), layout="constrained")
for decisions, colour, label in ((drawn, GREY, "drawn at random"), (chosen, BLUE, "compress")):
    changes = [100 * np.sqrt(np.mean((d - before) ** 2) / np.mean(before**2)) for d in decisions]
    errors = [100 * np.mean((d > 0) != y_test) for d in decisions]
    left.loglog(sizes, changes, ".-", color=colour, label=label)
    right.semilogx(sizes, errors, ".-", color=colour)
error = 100 * np.mean((before > 0) != y_test)
right.axhline(error, color="black", linestyle="--", linewidth=0.8)
right.text(sizes[-1], error - 0.5, f"all {len(X_train):,} rows", ha="right")
left.set(ylabel="change of the decisions, %")
right.set(ylabel="test error, %", ylim=(0, None))
left.legend(frameon=False)
for ax in (left, right):
    ax.minorticks_off()
    ax.set_xticks([12, 25, 50, 100], ["12", "25", "50", "100"])
    ax.set_xlabel("support rows kept")
left.set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
