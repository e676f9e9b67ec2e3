"""
Features that separate the classes
==================================

:class:`~hardmargin.MarginDiscriminantAnalysis` is a supervised transformer. For each class it
trains an SVM against all others, then more SVMs whose planes are orthogonal to those before
(MCS-06). A row's features are its projections onto these directions. A few such features can
replace many columns, for a simple classifier or for a picture. Here they are compared with the same
number of features from principal components and from linear discriminant analysis, on
scikit-learn's digits.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from hardmargin import MarginDiscriminantAnalysis
from hardmargin.displays import DiscriminantDisplay

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)

# %%
# Directions
# ----------
#
# One direction per class makes ten features. Directions are sums of kernels at training rows, so
# that they are not linear in the pixels. They are found by core sets, which also prove how close
# each one is to its optimum.

directions = MarginDiscriminantAnalysis(n_directions=1).fit(X_train, y_train)
gap = (directions.objective_ - directions.lower_bound_) / directions.objective_
print(f"{directions.transform(X_test).shape[1]} features instead of {X.shape[1]} pixels")
print(f"largest gap between an objective and its bound: {100 * gap.max():.1f} %")

# %%
# The picture shows test rows along the directions of two classes. Each direction sets its own class
# apart from all others. To show other classes, change ``directions``.

figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
DiscriminantDisplay.from_estimator(directions, X_test, y_test, directions=(4, 6), ax=ax)
ax.legend(title="class", loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %%
# Features for a simple classifier
# --------------------------------
#
# Nearest neighbours classify by the features alone, in three-fold cross-validation. LDA has at most
# one feature fewer than there are classes, PCA as many as there are pixels. Further directions of a
# class are orthogonal by default; with another constraint their projections are uncorrelated.

folds = StratifiedKFold(3, shuffle=True, random_state=0)


def error_of(*features):
    model = make_pipeline(*features, KNeighborsClassifier())
    return 100 - 100 * cross_val_score(model, X / 16, y, cv=folds).mean()


n_features = [10, 20, 30]
errors = {
    "margin, orthogonal": [error_of(MarginDiscriminantAnalysis(n // 10)) for n in n_features],
    "margin, uncorrelated": [
        error_of(MarginDiscriminantAnalysis(n // 10, constraint="uncorrelated-centred"))
        for n in n_features
    ],
    "PCA": [error_of(PCA(n, random_state=0)) for n in n_features],
}
lda_error, pixels_error = error_of(LinearDiscriminantAnalysis()), error_of()

print(f"{'features':22}" + "".join(f"{n:8}" for n in n_features))
for name, values in errors.items():
    print(f"{name:22}" + "".join(f"{value:8.2f}" for value in values) + "   error in %")
print(f"LDA, 9 features: {lda_error:.2f}; all {X.shape[1]} pixels: {pixels_error:.2f}")

# %%

figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
for (name, values), style in zip(errors.items(), ("o-", "o--", "s-"), strict=True):
    ax.plot(n_features, values, style, color=RED if name == "PCA" else BLUE, label=name)
ax.plot(9, lda_error, "^", color="black", label="LDA")
ax.axhline(pixels_error, color=GREY, linestyle=":", label="all pixels")
ax.set(xlabel="number of features", ylabel="error in %", xticks=n_features)
ax.set_ylim(0, 1.1 * max(lda_error, *errors["PCA"]))
ax.legend(loc="lower right", ncols=2)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# One direction per class, ten numbers, serve nearest neighbours better than all pixels do. LDA,
# with about as many, is linear in the pixels and worse. Principal components, which do not know the
# classes, need twice as many features to do as well as the pixels. More directions per class add
# little here: orthogonal ones may repeat what the first ones say, and uncorrelated ones change the
# error by a row or two.
#
# What to take away: use ``MarginDiscriminantAnalysis`` as a step of a pipeline where few supervised
# features are wanted, begin with one direction per class, and scale the columns before it.
