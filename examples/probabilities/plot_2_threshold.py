"""
A decision threshold from costs
===============================

Mistakes rarely cost the same. Here a missed fault costs twenty times as much as a needless
inspection, and faults are rare. The cheapest decision is then not the most probable class. With
good probabilities the threshold follows from the costs alone, without any search. This example
compares that threshold with one tuned by cross-validation, and shows where ``class_weight`` fits
in.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, confusion_matrix, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

from hardmargin import EnsembleSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"

# %%
# Data and costs
# --------------
#
# About one row in twenty is a fault. An inspection that was not needed costs 1, a fault that was
# missed costs 20, and correct decisions cost nothing.

X, y = make_classification(
    12_000,
    n_features=8,
    n_informative=6,
    n_redundant=0,
    n_clusters_per_class=3,
    weights=[0.95],
    class_sep=0.9,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=2_000, stratify=y, random_state=0
)

NEEDLESS, MISSED = 1.0, 20.0


def cost_per_row(y_true, y_pred):
    _, needless, missed, _ = confusion_matrix(y_true, y_pred).ravel()
    return (NEEDLESS * needless + MISSED * missed) / len(y_true)


print(f"faults: {100 * y_train.mean():.1f} % of the training rows")
print(f"cost per row, if nothing is inspected: {MISSED * y_test.mean():.3f}")
print(f"cost per row, if all rows are inspected: {NEEDLESS * (1 - y_test.mean()):.3f}")

# %%
# The threshold of Bayes
# ----------------------
#
# Inspecting a row with fault probability ``p`` costs ``NEEDLESS * (1 - p)`` on average, not
# inspecting it ``MISSED * p``. The first is less if ``p > NEEDLESS / (NEEDLESS + MISSED)``.

clf = EnsembleSVC().fit(X_train, y_train)
p_fault = clf.predict_proba(X_test)[:, 1]
bayes = NEEDLESS / (NEEDLESS + MISSED)
print(f"threshold of Bayes: {bayes:.4f}")

# %%
# The threshold of a search
# -------------------------
#
# ``TunedThresholdClassifierCV`` fits the model five times on parts of the rows, finds the threshold
# that is cheapest on those held out, and fits once more.

scorer = make_scorer(cost_per_row, greater_is_better=False)
tuned = TunedThresholdClassifierCV(EnsembleSVC(), scoring=scorer).fit(X_train, y_train)
print(f"threshold of the search: {tuned.best_threshold_:.4f}")

# %%
# Class weights
# -------------
#
# ``class_weight`` of ``EnsembleSVC`` multiplies the odds of the classes, and training is the same.
# With the costs as weights, ``predict`` is the decision of Bayes. Probabilities are then those of
# the weighted classes, so that the usual threshold of 0.5 applies to them.

weighted = EnsembleSVC(class_weight={0: NEEDLESS, 1: MISSED}).fit(X_train, y_train)

decisions = {
    "most probable class": clf.predict(X_test),
    "threshold of Bayes": (p_fault > bayes).astype(int),
    "threshold of the search": tuned.predict(X_test),
    "costs as class weights": weighted.predict(X_test),
    "class_weight='balanced'": EnsembleSVC(class_weight="balanced")
    .fit(X_train, y_train)
    .predict(X_test),
}
print(f"{'':26}{'cost per row':>12}{'inspected %':>13}{'faults found %':>16}")
for name, decision in decisions.items():
    cost = cost_per_row(y_test, decision)
    found = decision[y_test == 1].mean()
    print(f"{name:26}{cost:12.3f}{100 * decision.mean():13.1f}{100 * found:16.1f}")

# %%
# The first line is the most expensive by far. The threshold of Bayes, which needs no search, and
# the tuned one cost about the same, and class weights make the decisions of Bayes. Balanced weights
# are those of the class frequencies; they do well here only because the ratio of the costs happens
# to be close to that of the frequencies.
#
# The ranking of the rows does not change, and neither do measures that depend only on it:

p_weighted = weighted.predict_proba(X_test)[:, 1]
for name, p in [("no weights", p_fault), ("costs as weights", p_weighted)]:
    print(f"{name:18} average precision {average_precision_score(y_test, p):.4f}")

# %%
# Cost against the threshold
# --------------------------
#
# The cost of every threshold, on test rows. The curve is flat around its minimum: a threshold that
# is roughly right is enough, and 0.5 is far away.

thresholds = np.geomspace(0.002, 0.9, 200)
costs = [cost_per_row(y_test, p_fault > threshold) for threshold in thresholds]

figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.semilogx(thresholds, costs, color=BLUE)
for threshold, name, colour in [
    (bayes, "Bayes", BLUE),
    (tuned.best_threshold_, "search", RED),
    (0.5, "most probable class", GREY),
]:
    ax.axvline(threshold, color=colour, linestyle="--", linewidth=1, label=name)
ax.set_xticks([0.01, 0.05, 0.1, 0.5], ["0.01", "0.05", "0.1", "0.5"])
ax.minorticks_off()
ax.set(xlabel="threshold of the fault probability", ylabel="cost per test row", ylim=(0, None))
ax.legend(title="threshold")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to take away: if probabilities are calibrated, compute the threshold from the costs, or pass
# the costs as ``class_weight``; both cost one fit. A search needs several fits and is unsure of its
# threshold where faults are few, but it helps if probabilities cannot be trusted. When costs
# change, a threshold of Bayes changes with them at once, and the model stays as it is.
