"""The estimators: validation, labels, weights, multi-class; no loops over samples."""
