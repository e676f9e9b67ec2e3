"""
Relevance: a table with decoy columns
=====================================

A kernel compares rows by their distance, and every column adds to it, whether it matters or not.
Many useless columns therefore drown the useful ones, which is why SVMs are said to need feature
selection. :class:`~hardmargin.EnsembleSVC` measures how much each column moves its decision, scales
the columns by that relevance and trains again. The table here has four columns that matter, one of
them categorical, missing values, and forty decoys. It goes into ``fit`` as it is, and
``relevance_`` shows what was found.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from hardmargin import EnsembleSVC
from hardmargin.displays import RelevanceDisplay

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"

# %%
# The table
# ---------
#
# Whether an engine fails depends on its temperature (too hot or too cold), its age, its load and
# its maker. One number in ten is missing. The decoys are random: numbers, a category, and a
# shuffled copy of a column that matters.

rng = np.random.default_rng(0)
n = 3_000
table = pd.DataFrame(
    {
        "temperature": rng.normal(60, 12, n),
        "age": rng.exponential(4, n),
        "load": rng.uniform(0, 1, n),
        "maker": rng.choice(["Ada", "Babbage", "Curie"], n),
    }
)
strain = (
    np.abs(table["temperature"] - 60) / 12
    + table["age"] / 4 * table["load"] * 2
    + 1.2 * (table["maker"] == "Curie")
    + rng.normal(0, 0.5, n)
)
y = np.where(strain > strain.median(), "fails", "runs")

for k in range(38):
    table[f"decoy {k}"] = rng.normal(size=n)
table["shift"] = rng.choice(["early", "late", "night"], n)
table["old temperature"] = rng.permutation(table["temperature"])
numbers = table.select_dtypes("number").columns
table[numbers] = table[numbers].mask(rng.random((n, len(numbers))) < 0.1)
table["maker"] = table["maker"].astype("category")
table["shift"] = table["shift"].astype("category")

X_train, X_test, y_train, y_test = train_test_split(table, y, train_size=1_000, random_state=0)
print(X_train.iloc[:4, :6].round(2).to_string())

# %%
# What was found
# --------------
#
# Relevance is relative to the most relevant column. Decoys are not at zero: with a thousand rows,
# chance alone gives them some. The four columns that matter stand out.

clf = EnsembleSVC().fit(X_train, y_train)

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
RelevanceDisplay.from_estimator(clf, n_columns=12, ax=ax, color=BLUE)
plt.show()

# %%
# Does it help?
# -------------
#
# The rivals are an SVM with C and gamma searched, which needs the table made numeric, and gradient
# boosting, which takes it as it is and chooses columns while it grows its trees.
# ``relevance=False`` shows what scaling by relevance contributes. The last line is the same search
# for an SVM that has been told which columns matter.

numeric = make_column_transformer(
    (
        make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()),
        make_column_selector(dtype_include="number"),
    ),
    (OneHotEncoder(), make_column_selector(dtype_include="category")),
)
grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.001, 0.01, 0.1]}
search = GridSearchCV(make_pipeline(numeric, SVC()), grid, cv=3)
matter = ["temperature", "age", "load", "maker"]
models = {
    "EnsembleSVC()": clf,
    "EnsembleSVC(relevance=False)": EnsembleSVC(relevance=False).fit(X_train, y_train),
    "gradient boosting": HistGradientBoostingClassifier(
        categorical_features="from_dtype", random_state=0
    ).fit(X_train, y_train),
    "SVC, searched": clone(search).fit(X_train, y_train),
}
errors = {name: 1 - model.score(X_test, y_test) for name, model in models.items()}
told = clone(search).fit(X_train[matter], y_train)
errors["SVC, searched, told the four"] = 1 - told.score(X_test[matter], y_test)
for name, error in errors.items():
    spread = (error * (1 - error) / len(y_test)) ** 0.5
    print(f"{name:30} test error {100 * error:.1f} % ± {100 * spread:.1f}")

figure, ax = plt.subplots(figsize=(6.5, 2.6), layout="constrained")
colours = [BLUE, BLUE, RED, RED, GREY]
bars = ax.barh(list(errors), [100 * error for error in errors.values()], color=colours)
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.invert_yaxis()
ax.margins(x=0.12)
ax.set(xlabel="test error in %")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Scaling by relevance removes much of the harm that decoys do, and without it the ensemble falls
# behind. Gradient boosting is not far away: trees see only the columns that they split at. (The
# numbers after ± are standard errors: differences of that size may be chance.)
#
# Columns to keep
# ---------------
#
# ``feature_importances_`` is the same relevance as shares, so that scikit-learn's
# ``SelectFromModel`` works. It selects columns for any other classifier, or for a smaller table:

selection = SelectFromModel(clf, prefit=True, max_features=4, threshold=-np.inf)
kept = table.columns[selection.get_support()]
again = EnsembleSVC().fit(X_train[kept], y_train)
print("kept:", ", ".join(kept))
print(f"test error with these columns only: {100 - 100 * again.score(X_test[kept], y_test):.1f} %")

# %%
# What to take away: relevance lets a kernel machine ignore most of what does not matter, without a
# selection of columns beforehand. It is neither a test of significance nor importance: it says how
# much a column moves the decision, right or wrong. Take ``relevance_`` as a hint of what to keep,
# and confirm it with a model of the columns that were kept, or with
# ``sklearn.inspection.permutation_importance`` on rows set aside.
