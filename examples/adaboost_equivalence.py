"""
AdaBoost of Parzen windows is the training of an SVM
====================================================

Boosting that takes a Parzen window, weighted by its own distribution over the rows, for its base
hypothesis walks the very path of the hard-margin rho-SVM trained by multiplicative updates: the
distributions are the multipliers, the steps are the learning rates, the edge is the objective, and
the last window is the SVM (Tsang and Kwok, IJCAI 2007, section 3.1).

Which boosting algorithm does so is decided by the target that a stage sets for the edge:

- AdaBoost*_nu aims at a constant ``nu`` below the least edge so far; it shares the first stage;
- with the relative precision ``nu_t = edge * eps / (1 + eps)``, and eps halved where a stage fails,
  all stages are those of the rho-SVM.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from hardmargin.kernels import make_kernel
from hardmargin.kernels.matrix import kernel_matrix
from hardmargin.solvers.boosting import boost_parzen_windows
from hardmargin.solvers.rho import ProjectionOptions, solve_projection

N_STAGES = 40
EPS = (0.1, 0.005)  # the paper's

# %%
# The rho-SVM first: its multipliers after every stage are kept.

X, labels = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(X), np.where(labels == 1, 1.0, -1.0)
matrix = kernel_matrix(make_kernel("rbf", X, gamma="spread"), X)

multipliers = []
(svm,) = solve_projection(
    matrix,
    y,
    options=ProjectionOptions(eps_start=EPS[0], n_stages=N_STAGES),
    observe=lambda machine, signed: multipliers.append(signed * y),
)

# %%
# Then boosting, which knows of no SVM, with both targets.

relative = boost_parzen_windows(matrix, y, eps=EPS, n_stages=N_STAGES)
constant = boost_parzen_windows(matrix, y, nu=relative.precisions[0], n_stages=N_STAGES)


def difference(boosted, t):
    """Total variation between the boosting distribution and the multipliers after t stages."""
    if t >= len(boosted.distributions):
        return np.nan
    return 0.5 * np.abs(boosted.distributions[t] - multipliers[t]).sum()


print("               rho-SVM            relative nu_t           constant nu")
print("stage   objective      rate    c - eta    d - alpha    edge      d - alpha")
for t in (1, 2, 3, 5, 10, 20, 30, N_STAGES):
    edge = constant.edges[t] if t < len(constant.edges) else np.nan
    print(
        f"{t:5}{svm.rhos[t]:12.5f}{svm.rates[t - 1]:10.4f}"
        f"{relative.steps[t - 1] - svm.rates[t - 1]:11.0e}{difference(relative, t):13.0e}"
        f"{edge:10.5f}{difference(constant, t):13.0e}"
    )
print(
    """
Boosting weights the rows by the distribution d, and c is the step of a stage; alpha are the
multipliers of the rho-SVM, and eta is its rate. The edge is the mean of y h(x) under d, for the
window h that d weights: where d = alpha, it is the objective. So 0 in the columns c - eta and
d - alpha (half the sum of |d - alpha|) would be equality, and numbers as small as those of the
relative nu_t are rounding.
That grows from 1e-16 to 1e-7 or so by stage 30, as a stage multiplies what those before it rounded:
the minimum that decides c becomes ever flatter, and d follows c exponentially. Boosting alone parts
from itself as far, on rows that differ by 1e-15."""
)
ended = {"unreachable": "no distribution reaches its target", "n_stages": "as many as asked for"}
print(
    f"\nThe constant nu={relative.precisions[0]:.4f} ends after {len(constant.steps)} stages: "
    f"{ended.get(constant.stop_reason, constant.stop_reason)}."
)

# %%
# The votes agree as well: one is AdaBoost's, the other the paper's ensemble.

print(f"Largest difference of the votes: {np.abs(relative.ensemble - svm.ensemble).max():.0e}")

# %%
# The picture: the two paths of relative precision lie on each other, the constant nu leaves them.

try:
    import matplotlib.pyplot as plt
except ImportError:
    print("Install matplotlib to see the plot.")
else:
    figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
    ax.semilogy(svm.rhos, color="#8a929c", linewidth=5, label="rho-SVM: objective")
    ax.semilogy(relative.edges, color="#2f6f9f", label="boosting, relative nu_t: edge")
    ax.semilogy(constant.edges, "--", color="#c8553d", label="AdaBoost*_nu: edge")
    ax.set(xlabel="stage", ylabel="objective, or edge")
    ax.legend()
    if plt.get_backend().lower() != "agg":
        plt.show()
