"""The path of the rho-SVM: its objective, and the test errors of its planes and of their vote."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hardmargin import RhoEnsembleSVC, RhoSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"
X, y = make_moons(300, noise=0.35, random_state=1)
X_test, y_test = make_moons(2000, noise=0.35, random_state=2)
path = {"gamma": 6.0, "eps_stop": 1e-3}  # the paper ends at 0.005; this shows what comes later
vote = RhoEnsembleSVC(**path).fit(X, y)
plane = RhoSVC(**path).fit(X, y)
best = RhoSVC(gamma=6.0, solver="smo").fit(X, y)
published = RhoEnsembleSVC(gamma=6.0).fit(X, y).n_stages_

figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.8), layout="constrained")
left.loglog(np.arange(1, len(vote.rho_path_) + 1), vote.rho_path_, color=BLUE)
left.axhline(best.rho_, color=GREY, linestyle="--")
left.annotate(
    r"optimum $\rho^*$", (1, best.rho_), (2, 4), textcoords="offset points", color="#5a626c"
)
left.set(xlabel="stage", ylabel=r"objective $\bar\rho_t$")

for model, colour in ((plane, RED), (vote, BLUE)):
    errors = [100 * np.mean(labels != y_test) for labels in model.staged_predict(X_test)]
    right.semilogx(np.arange(1, len(errors) + 1), errors, color=colour)
right.set(xlabel="stage", ylabel="test error, %")
right.text(0.03, 0.75, "plane after\nthe stage", color=RED, transform=right.transAxes)
right.text(0.45, 0.2, "vote so far", color=BLUE, transform=right.transAxes)
for ax in (left, right):
    ax.axvline(published, color=GREY, linewidth=0.8)
left.annotate(
    "the paper\nstops here",
    (published, left.get_ylim()[1]),
    (-4, -4),
    textcoords="offset points",
    ha="right",
    va="top",
    color="#5a626c",
)
