"""What the estimators share: validation, scaling, storage, probabilities."""
