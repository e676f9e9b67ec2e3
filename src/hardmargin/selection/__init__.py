"""Choosing inside ``fit``: folds that share one kernel, and models weighed by held-out rows."""
