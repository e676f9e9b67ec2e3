"""Tables as they come: numbers, categories, dates, text and missing values."""

import functools

import numpy as np
import pandas as pd


@functools.cache
def customers(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n).round(1)),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "since": (
                pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D")
            ).strftime("%Y-%m-%d"),
            "calls": rng.poisson(3, n),
            "household": rng.integers(0, n // 3, n),
        }
    )
    score = 0.1 * (frame.age.fillna(40) - 40) + (frame.city == "Oslo") + frame.calls - 3
    frame["churn"] = np.where(score + rng.normal(size=n) > 0, "yes", "no")
    return frame


def write_customers(folder, name="customers.csv", n=240, seed=0):
    path = folder / name
    customers(n, seed).to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    return path
