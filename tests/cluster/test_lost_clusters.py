"""Models whose cluster is gone: every use of it says so."""

import dask.array as da
import dask.dataframe as dd
import pandas as pd
import pytest
from distributed import Client
from problems.cells import few_rows_are_many, many_rows

from hardmargin.dask import DaskEnsembleSVC, predict

X, Y = many_rows(600)
ARRAYS = da.from_array(X, chunks=(300, 4)), da.from_array(Y, chunks=300)
TABLE = dd.from_pandas(pd.DataFrame(X), npartitions=2)


@pytest.fixture(scope="module")
def lost():
    """A model, and predictions that nobody has computed yet; then the cluster is closed."""
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "silence_logs": 50}
    with pytest.MonkeyPatch.context() as patch:
        few_rows_are_many(patch)
        with Client(**options, dashboard_address=":0", set_as_default=False) as client:
            model = DaskEnsembleSVC(client=client, max_cell_rows=100, n_trees=1).fit(*ARRAYS)
            lazy = {"array": model.predict_proba(ARRAYS[0]), "frame": model.predict(TABLE)}
    return model, lazy


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(ARRAYS[0]),
        lambda model: model.predict_proba(TABLE),
        lambda model: model.predict_log_proba(ARRAYS[0]),
        lambda model: model.decision_function(ARRAYS[0]),
        lambda model: predict(model, ARRAYS[0]),
        lambda model: model.score(*ARRAYS),
        lambda model: model.to_local(),
        lambda model: model.fit(*ARRAYS),
    ],
    ids=["predict", "frame", "logs", "scores", "function", "score", "to_local", "fit"],
)
def test_a_lost_cluster_is_an_error(use, lost):
    with pytest.raises(ConnectionError, match="scheduler is lost"):
        use(lost[0])


@pytest.mark.parametrize("kind", ["array", "frame"])
@pytest.mark.parametrize(
    "part", [lambda own: own, lambda own: own.partitions[0]], ids=["all", "part"]
)
def test_predictions_that_were_not_computed_in_time(kind, part, lost):
    with pytest.raises(ConnectionError, match="scheduler is lost"):
        part(lost[1][kind]).compute()
