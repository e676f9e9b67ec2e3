"""Cells: rows go down a tree of cuts, and each leaf has kernel machines of its own."""

import numpy as np


def route_oracle(columns, directions, thresholds, children, X):
    """The cell that every row reaches, cut after cut."""
    cells = []
    for x in np.asarray(X, dtype=np.float32):
        at = 0 if len(columns) else -1
        while at >= 0:
            column = columns[at]
            value = x[column] if column >= 0 else 0.0
            if column < 0:
                for a, b in zip(x, directions[-column - 1], strict=True):
                    value += float(a) * float(b)
            at = children[at, 0] if float(value) <= float(thresholds[at]) else children[at, 1]
        cells.append(-at - 1)
    return np.array(cells, dtype=np.int32)


def expand_oracle(metrics, gammas, queries, support, rows, starts, means, scales, coef, cell):
    """Sums of a cell's kernels at all queries; coef[k] has the members as rows."""
    own = slice(starts[cell], starts[cell + 1])
    Z, S = ((A - means[cell]) * scales[cell] for A in (queries, support[rows[own]]))
    differences = (Z[:, None] - S).astype(float)
    sums = np.zeros((len(queries), coef[0].shape[1]))
    for k, metric in enumerate(metrics):
        parts = differences**2 if metric == "sqeuclidean" else np.abs(differences)
        if gammas[cell, k] > 0:
            sums += np.exp(-gammas[cell, k] * parts.sum(axis=2)) @ coef[k][own]
    return sums
