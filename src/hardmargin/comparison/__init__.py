"""Classifiers side by side on one table: errors, probabilities, time and memory, in a report."""
