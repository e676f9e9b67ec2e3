"""
AdaBoost of Parzen windows is the training of an SVM
====================================================

The base hypothesis here is a Parzen window, weighted by boosting's own distribution over the rows.
Boosting then follows the path of the hard-margin rho-SVM trained by multiplicative updates: the
distributions are the multipliers, the steps are the learning rates, the edge is the objective, and
the last window is the SVM (IJCAI-07, section 3.1). So an early stop of SVM training is an early
stop of boosting, and the ensemble of all stages is boosting's vote.

Whether the paths agree depends on the target that a stage sets for the edge:

- AdaBoost*_nu aims at a constant ``nu`` below the least edge so far; it shares the first stage;
- with the relative precision ``nu_t = edge * eps / (1 + eps)``, and eps halved when a stage fails,
  all stages are those of the rho-SVM.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from hardmargin.kernels import make_kernel
from hardmargin.kernels.matrix import kernel_matrix
from hardmargin.solvers import boosting, rho
from hardmargin.solvers.boosting import BoostingOptions
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.rho import RhoOptions

N_STAGES = 40
EPS = (0.1, 0.005)  # the paper's values

# %%
# The rho-SVM
# -----------
#
# Solvers can be called without an estimator: they take a problem, which is a kernel matrix with
# labels, and return one solution per machine. This one keeps its multipliers after every stage.

X, labels = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X), np.where(labels == 1, 1.0, -1.0)
matrix = kernel_matrix(make_kernel("rbf", X, gamma="spread"), X)

problem = Problem.two_class(matrix, y)

options = RhoOptions(eps_start=EPS[0], n_stages=N_STAGES, keep_planes=2**28)
[svm] = rho.solve(problem, options)
multipliers = svm.planes * y
objectives, rates = svm.history["rho"], svm.history["rate"]

# %%
# Boosting
# --------
#
# Then boosting, which knows nothing about SVMs, with both targets.

[relative] = boosting.solve(problem, BoostingOptions(eps=EPS, n_stages=N_STAGES))
nu = relative.history["precision"][0]
[constant] = boosting.solve(problem, BoostingOptions(nu=nu, n_stages=N_STAGES))
constant_edges = constant.history["edge"]

# %%
# Stage by stage
# --------------
#
# Boosting weights the rows by the distribution d, and c is the step of a stage; alpha are the
# multipliers of the rho-SVM, and eta is its rate. The edge is the mean of y h(x) under d, for the
# window h that d weights: where d = alpha, it is the objective. In the columns ``c - eta`` and
# ``d - alpha`` (half the sum of the absolute differences), 0 would be equality.


def difference(boosted, t):
    """Total variation between the boosting distribution and the multipliers after t stages."""
    if t >= len(boosted.distributions):
        return np.nan
    return 0.5 * np.abs(boosted.distributions[t] - multipliers[t]).sum()


print("               rho-SVM            relative nu_t           constant nu")
print("stage   objective      rate    c - eta    d - alpha    edge      d - alpha")
for t in (1, 2, 3, 5, 10, 20, 30, N_STAGES):
    edge = constant_edges[t] if t < len(constant_edges) else np.nan
    step = relative.history["step"][t - 1]
    print(
        f"{t:5}{objectives[t]:12.5f}{rates[t - 1]:10.4f}"
        f"{step - rates[t - 1]:11.0e}{difference(relative, t):13.0e}"
        f"{edge:10.5f}{difference(constant, t):13.0e}"
    )

# %%
# Numbers as small as those of the relative ``nu_t`` are rounding errors. They grow from about 1e-16
# with the stages, because each stage amplifies the errors of those before it: the minimum that
# decides c becomes ever flatter, and d follows c exponentially. Two runs of boosting differ by as
# much if their rows differ by 1e-15.
#
# The constant ``nu`` departs after the first stage:

ended = {"unreachable": "no distribution reaches its target", "n_stages": "as many as requested"}
print(
    f"The constant nu={nu:.4f} ends after {constant.n_stages} stages: "
    f"{ended.get(constant.stop_reason, constant.stop_reason)}."
)

# %%
# In the picture, the rho-SVM and boosting with relative precision coincide. The edge of a constant
# ``nu`` soon swings from stage to stage.

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
ax.semilogy(objectives, color="#8a929c", linewidth=5, label="rho-SVM: objective")
ax.semilogy(relative.history["edge"], color="#2f6f9f", label="boosting, relative nu_t: edge")
ax.semilogy(constant_edges, "--", color="#c8553d", label="AdaBoost*_nu: edge")
ax.set(xlabel="stage", ylabel="objective, or edge")
ax.legend()
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The votes
# ---------
#
# The votes agree as well: one is AdaBoost's, the other the paper's ensemble.

votes = [solution.ensemble.coefficients for solution in (relative, svm)]
print(f"Largest difference of the votes: {np.abs(votes[0] - votes[1]).max():.0e}")

# %%
# What to take away: the ensemble of partially trained SVMs is AdaBoost, with a Parzen window as the
# base and one choice of the target. :class:`~hardmargin.RhoEnsembleSVC` is that ensemble as an
# estimator, and :class:`~hardmargin.EnsembleSVC` also chooses where to stop.
