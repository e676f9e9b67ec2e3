"""The public estimators, one per file; ``_base`` holds what they share."""
