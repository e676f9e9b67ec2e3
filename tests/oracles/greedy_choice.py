"""Naive held-out log-loss of the greedy stagewise SVM: every fold by itself, in plain numpy."""

import numpy as np
from oracles.greedy import algorithm_1, with_revisits
from oracles.kernels import kernel_matrix
from scipy.optimize import minimize
from scipy.special import expit

STAGES_PER_ROW = 8
REACH = 2.0  # of log-odds where kernels have decayed


def held_out_scores(kernel, X, codes, negative, positive, splits, max_visits):
    """Scores of one machine, split after split, and whether each is of a positive row."""
    scores, labels = [], []
    for train, test in splits:
        rows = [i for i in train if codes[i] in (*negative, *positive)]
        y = np.where(np.isin(codes[rows], positive), 1.0, -1.0)
        K = kernel_matrix(kernel, X[rows])
        if max_visits == 1:
            path = algorithm_1(K, y)
        else:
            path = with_revisits(K, y, max_visits, max_stages=STAGES_PER_ROW * len(train))
        alpha = np.zeros(len(rows))
        np.add.at(alpha, path.order, path.steps)
        queries = [i for i in test if codes[i] in (*negative, *positive)]
        scores.append(kernel_matrix(kernel, X[queries], X[rows]) @ (alpha * y))
        labels.append(np.isin(codes[queries], positive))
    return np.concatenate(scores), np.concatenate(labels)


def platt_log_loss(scores, positive, reach=np.inf):
    """Log-loss of the labels under Platt's sigmoid, whose offset is near the classes' log-odds."""
    scores = scores / np.abs(scores).max()
    n_positive, n_negative = positive.sum(), (~positive).sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(t):
        z = t[0] * scores + t[1]
        return np.sum(np.logaddexp(0, z) - target * z)

    log_odds = np.log((n_positive + 1) / (n_negative + 1))
    slope, offset = minimize(loss, [0.0, 0.0], tol=1e-10).x
    if abs(offset - log_odds) > reach:  # the loss is convex
        offset = log_odds + reach * np.sign(offset - log_odds)
        [slope] = minimize(lambda t: loss([t[0], offset]), [0.0], tol=1e-10).x
    p = expit(slope * scores + offset)
    return -np.log(np.where(positive, p, 1 - p)).mean()


def mean_log_loss(kernel, X, codes, machines, splits, max_visits):
    """The mean of the machines' log-losses, weighted by their numbers of rows."""
    pairs = [
        held_out_scores(kernel, X, codes, negative, positive, splits, max_visits)
        for negative, positive in machines
    ]
    losses = [platt_log_loss(*pair, REACH) for pair in pairs]
    return np.average(losses, weights=[len(scores) for scores, _ in pairs])
