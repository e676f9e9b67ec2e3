"""The algorithms: arrays and a kernel in, a solution with its certificate and history out."""
