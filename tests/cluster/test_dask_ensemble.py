"""DaskEnsembleSVC: the same model as EnsembleSVC, from rows that live on a cluster."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems.cells import few_rows_are_many, many_rows
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold

from hardmargin import EnsembleSVC, GreedySVC, RhoSVC
from hardmargin.dask import DaskEnsembleSVC, predict
from hardmargin.dask.cluster import Cluster, side_by_side

#: A fit in which all kinds of work happen, and not much of any.
SMALL = {"max_cell_rows": 300, "n_trees": 1}

METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function"]


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    few_rows_are_many(monkeypatch)


def table_of(n, n_classes=2):
    X, y = many_rows(n, n_classes)
    return X.copy(), y


def arrays(X, y, sizes):
    return da.from_array(X, chunks=(sizes, X.shape[1])), da.from_array(np.asarray(y), chunks=sizes)


def computed(collection, client):
    """Compute, or fail if that takes too long."""
    return client.compute(collection).result(timeout=60)


def assert_same_models(local, on_cluster):
    """Same cuts and, to 1e-8, the same coefficients and weights of the experts."""
    gathered = on_cluster.to_local()
    assert type(gathered) is EnsembleSVC
    ours, theirs = gathered._experts_, local._experts_
    assert len(ours.layers) == len(theirs.layers) > 0
    for own, other in zip(ours.layers, theirs.layers, strict=True):
        for name in ("columns", "thresholds", "directions", "children"):
            np.testing.assert_array_equal(getattr(own.cuts, name), getattr(other.cuts, name))
        np.testing.assert_array_equal(own.members, other.members)
        np.testing.assert_allclose(own.values, other.values, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-6)
    np.testing.assert_array_equal(gathered.support_, local.support_)
    assert on_cluster.cv_log_loss_ == pytest.approx(local.cv_log_loss_, rel=1e-8)


# --- the same model -------------------------------------------------------------------------------


@pytest.mark.once_per("sizes")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sizes", [(250,) * 4, (600, 10, 90, 300)], ids=["even", "uneven"])
def test_arrays(client, n_classes, sizes):
    X, y = table_of(1000, n_classes)
    local = EnsembleSVC(max_cell_rows=200, n_trees=2).fit(X, y)
    model = DaskEnsembleSVC(max_cell_rows=200, n_trees=2, client=client)
    model.fit(*arrays(X, y, sizes))
    assert_same_models(local, model)
    np.testing.assert_array_equal(model.experts_, local.experts_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predictions_are_those_of_the_local_model(client, n_classes):
    X, y = table_of(1000, n_classes)
    model = DaskEnsembleSVC(client=client, class_weight="balanced", **SMALL)
    model.fit(*arrays(X, y, (500, 500)))
    local = EnsembleSVC(class_weight="balanced", **SMALL).fit(X, y)
    for method in METHODS:
        found = getattr(model, method)(da.from_array(X, chunks=(300, -1)))
        assert isinstance(found, da.Array)
        expected = getattr(local, method)(X)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(computed(found, client), expected, rtol=1e-6, atol=1e-8)


def test_sample_weights(client):
    X, y = table_of(1200)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    local = EnsembleSVC(**SMALL).fit(X, y, sample_weight=weights)
    dX, dy = arrays(X, y, (500, 700))
    of_cluster = da.from_array(weights, chunks=(500, 700))
    model = DaskEnsembleSVC(client=client, **SMALL).fit(dX, dy, sample_weight=of_cluster)
    assert_same_models(local, model)


def test_missing_values_and_columns_of_huge_numbers(client):
    X, y = table_of(1000)
    X[::3, 0] = np.nan
    X[:500, 1] = np.nan  # in one block only
    X[5, 2] = 1e12
    with pytest.warns(UserWarning, match="clipped"):
        local = EnsembleSVC(**SMALL).fit(X, y)
    with pytest.warns(UserWarning, match="clipped"):
        model = DaskEnsembleSVC(client=client, **SMALL).fit(*arrays(X, y, (500, 500)))
    assert_same_models(local, model)


def test_copies_of_rows_stay_together(client):
    X, y = table_of(500)
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    local = EnsembleSVC(**SMALL).fit(X, y)
    assert_same_models(
        local, DaskEnsembleSVC(client=client, **SMALL).fit(*arrays(X, y, (350, 650)))
    )


def test_groups(client):
    X, y = table_of(1400)
    groups = np.arange(1400) // 20
    local = EnsembleSVC(cv=GroupKFold(3), **SMALL).fit(X, y, groups=groups)
    model = DaskEnsembleSVC(cv=GroupKFold(3), client=client, **SMALL)
    model.fit(*arrays(X, y, (350, 1050)), groups=da.from_array(groups, chunks=250))
    assert_same_models(local, model)


@pytest.mark.filterwarnings("ignore:Creating scipy sparse:DeprecationWarning")
def test_sparse_partitions(client):
    X, y = table_of(1000)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    local = EnsembleSVC(**SMALL).fit(sp.csr_array(X), y)
    dX, dy = arrays(X, y, (450, 550))
    dX = dX.map_blocks(sp.csr_array)
    model = DaskEnsembleSVC(client=client, **SMALL).fit(dX, dy)
    assert_same_models(local, model)
    np.testing.assert_allclose(
        computed(model.predict_proba(dX), client), local.predict_proba(sp.csr_array(X)), atol=1e-6
    )


def test_data_frames_with_names_categories_and_labels_of_strings(client):
    X, y = table_of(1000)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["colour"] = pd.Categorical(np.where(X[:, 0] > 1, "red", "blue"))
    table["town"] = np.where(X[:, 1] > 0, "Rome", "Oslo")
    table.loc[600:, "town"] = "Bonn"  # not in the first partition
    labels = pd.Series(np.where(y == 1, "yes", "no"), name="target")
    local = EnsembleSVC(**SMALL).fit(table, labels)
    dX, dy = dd.from_pandas(table, npartitions=3), dd.from_pandas(labels, npartitions=3)
    model = DaskEnsembleSVC(client=client, **SMALL).fit(dX, dy)
    assert_same_models(local, model)
    assert list(model.feature_names_in_) == list(local.feature_names_in_)
    np.testing.assert_array_equal(model.relevance_, local.relevance_)
    predicted = model.predict(dX)
    assert isinstance(predicted, dd.Series)
    assert computed(predicted, client).tolist() == local.predict(table).tolist()
    chances = computed(model.predict_proba(dX), client)
    assert list(chances.columns) == ["no", "yes"]
    assert chances.index.equals(table.index)


def test_data_frames_with_many_categories_and_classes(client):
    X, _ = table_of(1000)
    shop = np.random.default_rng(0).integers(150, size=1000)
    table, labels = pd.DataFrame({"shop": [f"shop {i}" for i in shop], "x": X[:, 0]}), shop % 3
    local = EnsembleSVC(max_cell_rows=400, n_trees=1).fit(table, labels)
    dX, dy = dd.from_pandas(table, npartitions=3), dd.from_pandas(pd.Series(labels), npartitions=3)
    model = DaskEnsembleSVC(client=client, max_cell_rows=400, n_trees=1).fit(dX, dy)
    assert_same_models(local, model)


def test_empty_partitions_and_more_workers_than_partitions(client):
    X, y = table_of(1000)
    local = EnsembleSVC(**SMALL).fit(X, y)
    table, labels = pd.DataFrame(X), pd.Series(y)
    parts = [slice(0, 0), slice(0, 1000), slice(1000, None)]
    dX, dy = (
        dd.from_map(lambda part, all_rows=all_rows: all_rows.iloc[part], parts)
        for all_rows in (table, labels)
    )
    model = DaskEnsembleSVC(client=client, **SMALL).fit(dX.to_dask_array(), dy.to_dask_array())
    assert_same_models(local, model)
    assert len(computed(model.predict(dX.to_dask_array()), client)) == 1000


def test_few_rows_make_one_machine_on_a_worker(client):
    X, y = table_of(200)
    local = EnsembleSVC().fit(X, y)
    model = DaskEnsembleSVC(client=client).fit(*arrays(X, y, (150, 50)))
    np.testing.assert_allclose(
        model.predict_proba(da.from_array(X, chunks=(50, -1))).compute(), local.predict_proba(X)
    )
    np.testing.assert_array_equal(model.dual_coef_, local.dual_coef_)


def test_one_machine_of_many_rows_warns(client, monkeypatch):
    monkeypatch.setattr("hardmargin.dask.estimator.MAX_STORED_ROWS", 300)
    X, y = table_of(1000)
    model = DaskEnsembleSVC(kernel="linear", client=client, n_stages=3)
    with pytest.warns(UserWarning, match="one worker holds all 1,000 rows"):
        model.fit(*arrays(X, y, (500, 500)))


# --- a good citizen -------------------------------------------------------------------------------


def test_the_gathered_model_can_be_saved(client):
    X, y = table_of(800)
    model = DaskEnsembleSVC(client=client, **SMALL).fit(*arrays(X, y, (400, 400)))
    local = pickle.loads(pickle.dumps(model.to_local()))
    found = computed(model.predict(da.from_array(X)), client)
    np.testing.assert_array_equal(local.predict(X), found)
    np.testing.assert_array_equal(model.to_local().predict(X), found)  # as often as one likes
    with pytest.raises(TypeError, match="to_local"):
        pickle.dumps(model)


def test_parameters_are_those_of_the_ensemble(client):
    model = DaskEnsembleSVC(n_trees=1, client=client)
    assert set(model.get_params()) == {*EnsembleSVC().get_params(), "client"}
    assert clone(model).client is client
    assert clone(model.set_params(cv=3)).cv == 3


def test_notebooks_show_it():
    assert "DaskEnsembleSVC" in DaskEnsembleSVC()._repr_html_()


def test_without_a_client_the_current_one_is_used(client):
    X, y = table_of(800)
    dX, dy = arrays(X, y, (400, 400))
    with client.as_current():
        assert DaskEnsembleSVC(**SMALL).fit(dX, dy).score(dX, dy) > 0.7


def test_a_time_limit_ends_the_cells(client, monkeypatch):
    X, y = table_of(1000)
    model = DaskEnsembleSVC(client=client, max_time=1e-3, **SMALL)
    with pytest.warns(UserWarning, match="max_time") as warned:
        model.fit(*arrays(X, y, (500, 500)))
    assert not any("stages so far" in str(each.message) for each in warned)  # of one expert
    assert np.isfinite(computed(model.predict_proba(da.from_array(X)), client)).all()


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("container", ["array", "frame"])
def test_any_estimator_predicts_on_collections(method, container):
    X, y = table_of(120)
    table = pd.DataFrame(X, columns=list("abcd"))
    given = table if container == "frame" else X
    local = GreedySVC().fit(given, y)
    rows = (
        dd.from_pandas(table, npartitions=3) if container == "frame" else da.from_array(X, (50, 4))
    )
    found = predict(local, rows, method=method).compute(scheduler="synchronous")
    np.testing.assert_allclose(found, getattr(local, method)(given), atol=1e-12)


# --- errors ---------------------------------------------------------------------------------------


def test_rows_in_memory_are_refused(client):
    X, y = table_of(50)
    with pytest.raises(TypeError, match="EnsembleSVC takes rows in memory"):
        DaskEnsembleSVC(client=client).fit(X, y)


def test_rows_on_a_cluster_are_refused_in_memory():
    X, y = table_of(40)
    frame = dd.from_pandas(pd.DataFrame(X).add_prefix("x"), npartitions=2)
    for estimator in (EnsembleSVC(), RhoSVC()):
        with pytest.raises(TypeError, match=r"DaskEnsembleSVC.*X\.compute\(\)"):
            estimator.fit(frame, y)


def test_missing_values_of_pandas_in_arrays(client):
    X, y = table_of(400)
    frame = pd.DataFrame(X).add_prefix("x").assign(flag=pd.array([True, None] * 200, "boolean"))
    rows = dd.from_pandas(frame, npartitions=3).to_dask_array(lengths=True)
    clf = DaskEnsembleSVC(client=client, **SMALL).fit(rows, da.from_array(y, rows.chunks[:1]))
    gaps = frame.to_numpy(dtype=float, na_value=np.nan)
    local = EnsembleSVC(**SMALL).fit(gaps, y)
    np.testing.assert_allclose(
        computed(clf.decision_function(rows), client), local.decision_function(gaps), atol=1e-8
    )


def test_partitions_must_match(client):
    X, y = table_of(100)
    dX, dy = dd.from_pandas(pd.DataFrame(X), npartitions=2), da.from_array(y, chunks=(30, 70))
    with pytest.raises(ValueError, match="Partition 0 has 50 rows of X, but 30 labels"):
        DaskEnsembleSVC(client=client).fit(dX, dy)


def test_bad_values_are_named(client):
    X, y = table_of(100)
    X[70, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity.* row 20 .*within the partition"):
        DaskEnsembleSVC(client=client).fit(*arrays(X, y, (50, 50)))


def test_missing_labels_are_named(client, monkeypatch):
    tasks, submit = [], Cluster.submit
    monkeypatch.setattr(Cluster, "submit", lambda *args: tasks.append(submit(*args)) or tasks[-1])
    X, y = table_of(100)
    labels = pd.Series(np.where(y == 1, "yes", "no")).astype("string")
    labels[7] = pd.NA
    dX, dy = dd.from_pandas(pd.DataFrame(X), npartitions=2), dd.from_pandas(labels, npartitions=2)
    with pytest.raises(ValueError, match="y has 1 missing labels"):
        DaskEnsembleSVC(client=client).fit(dX, dy)
    assert {task.status for task in tasks} == {"finished"}  # workers log those that fail


def test_other_columns_are_refused_at_once():
    X, y = table_of(60)
    table = pd.DataFrame(X, columns=list("abcd"))
    rows = dd.from_pandas(table, npartitions=2)
    with pytest.raises(ValueError, match="now missing"):
        predict(GreedySVC().fit(table, y), rows.drop(columns="c"))
    with pytest.raises(ValueError, match="3 features"):
        predict(GreedySVC().fit(X, y), da.zeros((10, 3)))


def test_one_class_is_refused(client):
    X, _ = table_of(100)
    with pytest.raises(ValueError, match="only one class"):
        DaskEnsembleSVC(client=client).fit(*arrays(X, np.ones(100), (50, 50)))


def test_an_estimator_that_is_not_fitted(client):
    with pytest.raises(NotFittedError):
        DaskEnsembleSVC(client=client).predict(da.zeros((10, 2)))
    with pytest.raises(NotFittedError):
        predict(EnsembleSVC(), da.zeros((10, 2)))


def test_an_unknown_method():
    model = GreedySVC().fit(*table_of(60))
    with pytest.raises(ValueError, match="method must be one of predict"):
        predict(model, da.zeros((10, 4)), method="transform")


@pytest.mark.parametrize(
    "some",
    [np.array([0, 0, 1, 0, 0, 1], dtype=bool), np.array([5, 2, 2]), slice(1, None, 2)],
    ids=["mask", "numbers", "slice"],
)
def test_some_rows_of_a_cluster_are_those_of_the_array(some, client):
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1] * 3)
    rows, _ = side_by_side(*arrays(X, y, 2), Cluster(client))
    np.testing.assert_array_equal(rows[some], X[some])
