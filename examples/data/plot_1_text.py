"""
Text: which package does a docstring belong to?
===============================================

Text becomes rows of TF-IDF, sparse and with thousands of columns. :class:`~hardmargin.EnsembleSVC`
takes such rows as they are. It finds out from held-out rows whether to standardise them, and
whether RBF kernels are worth their time beside a linear one. The documents here are docstrings of
four packages that are installed along with this one, and the class is the package. The rival is the
usual choice for text, a linear SVM with calibrated probabilities. As documents of one file resemble
each other, the example also shows how groups are kept together in the folds of ``fit``.
"""

import ast
import importlib.util
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay, log_loss
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from hardmargin import EnsembleSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"

# %%
# The documents
# -------------
#
# ``ast`` reads the docstrings of a package's files, in random order, until there are enough.
# Nothing is imported. Other versions of the packages give slightly different numbers.

PACKAGES = ["numpy", "scipy", "sklearn", "pandas"]
N_DOCUMENTS = 500  # of each package
N_PER_FILE = 8
LEAST_WORDS = 10


def docstrings_of(path):
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            if len(text.split()) >= LEAST_WORDS:
                found.append(text)
    return found[:N_PER_FILE]


documents, labels, files = [], [], []
rng = np.random.default_rng(0)
for package in PACKAGES:
    folder = Path(importlib.util.find_spec(package).origin).parent
    paths = sorted(path for path in folder.rglob("*.py") if "tests" not in path.parts)
    found = {}  # each docstring once, with its file
    for k in rng.permutation(len(paths)):
        found.update(dict.fromkeys(docstrings_of(paths[k]), str(paths[k])))
        if len(found) >= N_DOCUMENTS:
            break
    documents += found.keys()
    files += found.values()
    labels += [package] * len(found)
documents, labels, files = np.array(documents, dtype=object), np.array(labels), np.array(files)

# %%
# Whole files are kept for the test. The names of the packages would give the class away and are
# left out.

split = GroupShuffleSplit(n_splits=1, test_size=0.4, random_state=0)
train, test = next(split.split(documents, labels, groups=files))
names = [*PACKAGES, "np", "pd", "sp", "scikit", "learn"]
words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words=names)
n_words = words.fit_transform(documents[train]).shape[1]
print(f"{len(train)} documents to train on, with {n_words} different words; {len(test)} to test")

# %%
# Pipelines, with and without groups
# ----------------------------------
#
# ``EnsembleSVC`` holds rows out to weight its kernels and to fit its probabilities. By default
# these are random rows, often with others of the same file among the training rows, and so they are
# easier than documents of new files will be. ``cv=GroupKFold(5)``, with the files passed to
# ``fit``, holds whole files out. ``CalibratedClassifierCV`` takes the same folds as a list.

folds = list(GroupKFold(5).split(train, groups=files[train]))
grouped = make_pipeline(words, EnsembleSVC(cv=GroupKFold(5)))
models = {
    "EnsembleSVC": make_pipeline(words, EnsembleSVC()),
    "EnsembleSVC, groups": grouped,
    "LinearSVC, calibrated": make_pipeline(words, CalibratedClassifierCV(LinearSVC())),
    "LinearSVC, calibrated, groups": make_pipeline(
        words, CalibratedClassifierCV(LinearSVC(), cv=folds)
    ),
}
losses = {}
print(f"{'':30}{'error %':>9}{'log-loss':>10}{'CPU seconds':>13}")
for name, model in models.items():
    options = {"ensemblesvc__groups": files[train]} if model is grouped else {}
    start = time.process_time()
    model.fit(documents[train], labels[train], **options)
    seconds = time.process_time() - start
    error = 100 * np.mean(model.predict(documents[test]) != labels[test])
    losses[name] = log_loss(labels[test], model.predict_proba(documents[test]))
    print(f"{name:30}{error:9.1f}{losses[name]:10.3f}{seconds:13.2f}")

# %%
# Diamonds are the log-loss that ``EnsembleSVC`` itself expects (``cv_log_loss_``). Without groups
# it expects far less than it gets.

figure, ax = plt.subplots(figsize=(6.5, 2.6), layout="constrained")
ax.barh(list(losses), list(losses.values()), color=[BLUE, BLUE, RED, RED])
expected = [models[name][-1].cv_log_loss_ for name in ("EnsembleSVC", "EnsembleSVC, groups")]
ax.plot(expected, [0, 1], "D", color="white", markeredgecolor="black", label="expected by fit")
ax.invert_yaxis()
ax.set(xlabel="log-loss of test documents")
ax.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Where the model with groups puts the documents of each package:

figure, ax = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    labels[test],
    grouped.predict(documents[test]),
    normalize="true",
    values_format=".2f",
    cmap="Blues",
    colorbar=False,
    ax=ax,
)
ax.set(xlabel="predicted package", ylabel="package")
plt.show()

# %%
# What was chosen
# ---------------

clf = grouped[-1]
print(f"standardised: {clf.standardized_}")
for kernel in np.unique(clf.kernel_weights_["kernel"]):
    is_kernel = clf.kernel_weights_["kernel"] == kernel
    share = clf.kernel_weights_["share"][is_kernel].sum() / len(clf.classes_)
    print(f"{kernel:8} share of the votes {share:.2f}")

# %%
# What to take away: TF-IDF goes into ``EnsembleSVC`` without any setting. On documents like these
# it is about as good as a calibrated linear SVM, and takes a few times as long. Whatever the model,
# keep documents of one source in one fold, or the held-out numbers promise too much.
