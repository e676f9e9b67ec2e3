"""Rows, labels and columns of collections as users have them: what belongs together is together."""

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed.client import FutureCancelledError
from problems.cells import few_rows_are_many, many_rows

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.dask import DaskEnsembleSVC, predict
from hardmargin.dask.cluster import Cluster, identity, side_by_side

N_ROWS = 240


def numbered(n=N_ROWS):
    """Rows whose column `n` is their number, as is their label `y`."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return table.assign(n=np.arange(n), y=np.arange(n))


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    """Reads nine small files, several at once if few columns are asked for."""
    path = tmp_path_factory.mktemp("files")
    dd.from_pandas(numbered(), npartitions=9).to_parquet(path)
    return lambda: dd.read_parquet(path)


@pytest.fixture(scope="module")
def read_csv(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "all.csv"
    numbered().to_csv(path, index=False)
    return lambda: dd.read_csv(path, blocksize=4000)


def arrived(client, X, y, **others):
    """What arrives on the cluster: numbers of the rows, their labels, and other values."""
    rows, labels, *values = side_by_side(X, y, Cluster(client), **others)
    numbers = np.concatenate([np.asarray(block)[:, -1] for block in rows.each(identity)])
    return numbers, np.concatenate([own.classes[own.codes] for own in labels]), *values


def in_parts(*parts, meta=None):
    """A data frame whose partitions are these, whatever their columns and types."""
    meta = parts[0].iloc[:0] if meta is None else meta
    return dd.from_map(lambda k: parts[k], range(len(parts)), meta=meta, enforce_metadata=False)


# --- rows and what belongs to them ----------------------------------------------------------------

IDIOMS = {
    "all but y": lambda R: (R.drop(columns="y"), R["y"]),
    "few columns": lambda R: (R[["n"]], R["y"]),
    "a frame of labels": lambda R: (R[["n"]], R[["y"]]),
    "a filter": lambda R: (R[R.a > 0].drop(columns="y"), R[R.a > 0]["y"]),
    "sorted": lambda R: (R.sort_values("a")[["a", "n"]], R.sort_values("a")["y"]),
    "persisted": lambda R: (R.persist()[["n"]], R.persist()["y"]),
    "columns of an array": lambda R: (lambda A: (A[:, :4], A[:, 4]))(R.to_dask_array(lengths=True)),
    "arrays of unknown length": lambda R: (R[["n"]].to_dask_array(), R["y"].to_dask_array()),
    "an array of labels": lambda R: (R[["n"]], da.from_array(np.arange(N_ROWS), chunks=50)),
    "an array of rows": lambda R: (da.from_array(numbered().iloc[:, :4].to_numpy()), R["y"]),
}


@pytest.mark.once_per("idiom")
@pytest.mark.parametrize("idiom", IDIOMS.values(), ids=IDIOMS)
@pytest.mark.parametrize("reader", ["read", "read_csv"])
def test_rows_keep_their_labels(idiom, reader, client, request):
    numbers, labels = arrived(client, *idiom(request.getfixturevalue(reader)()))
    assert len(numbers) > 0
    np.testing.assert_array_equal(numbers, labels)


def test_rows_and_labels_of_different_files(client, read, read_csv):
    numbers, labels = arrived(client, read()[["n"]], read_csv()["y"])
    np.testing.assert_array_equal(numbers, labels)


def test_partitions_of_other_sizes_with_the_same_index(client, read):
    X, y = (own.repartition(npartitions=4) for own in (read()[["a", "b", "n"]], read()["y"]))
    numbers, labels = arrived(client, X, y)
    np.testing.assert_array_equal(numbers, labels)


def test_weights_and_groups_of_the_same_frame(client, read):
    R = read()
    numbers, _, weights, groups, nothing = arrived(
        client, R[["a", "n"]], R["y"], sample_weight=R["n"] * 2, groups=np.arange(N_ROWS), no=None
    )
    np.testing.assert_array_equal(weights, 2 * numbers)
    np.testing.assert_array_equal(groups, numbers)
    assert nothing is None


@pytest.mark.parametrize(
    "idiom",
    [
        lambda R: (R.drop(columns="y"), R["y"], R["a"]),
        lambda R: (R[R.a > 0][["n"]], R[R.a > 0]["y"], R[R.a > 0]["b"]),
    ],
    ids=["all", "filtered"],
)
def test_every_file_is_read_once(idiom, client, tmp_path):
    table = numbered()

    def read(k):
        with open(tmp_path / str(k), "a", encoding="utf-8") as file:
            file.write("read ")
        return table.iloc[60 * k : 60 * (k + 1)]

    X, y, weights = idiom(dd.from_map(read, range(4), meta=table.iloc[:0]))
    arrived(client, X, y, sample_weight=weights)
    assert [(tmp_path / str(k)).read_text(encoding="utf-8") for k in range(4)] == ["read "] * 4


def test_other_lengths_are_named(client, read):
    R = read()
    with pytest.raises(ValueError, match=r"X has 1\d\d rows, but y has 240;"):
        arrived(client, R[R.a > 0].drop(columns="y"), R["y"])
    with pytest.raises(ValueError, match="X has 240 rows, but sample_weight has 7;"):
        arrived(client, R[["n"]], R["y"], sample_weight=np.ones(7))
    with pytest.raises(ValueError, match="X has 6 rows, but y has 4;"):
        arrived(client, da.zeros((6, 2)), da.zeros(4))


def test_labels_in_another_order_are_refused(client):
    table = numbered()
    X, y = dd.from_pandas(table[["n"]], npartitions=3), table["y"].sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match="X and y have the same index in another order"):
        arrived(client, X, dd.from_pandas(y, npartitions=2, sort=False))


def test_the_natural_idiom(tmp_path, client):
    X, y = many_rows(300)
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=np.where(y > 0, "yes", "no"))
    dd.from_pandas(table, npartitions=4).to_parquet(tmp_path)
    R = dd.read_parquet(tmp_path)
    model = DaskEnsembleSVC(client=client).fit(R.drop(columns="y"), R["y"])
    local = EnsembleSVC().fit(table.drop(columns="y"), table["y"])
    np.testing.assert_array_equal(model.dual_coef_, local.dual_coef_)
    found = predict(local, R.drop(columns="y")).compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, local.predict(table.drop(columns="y")))
    assert found.index.equals(table.index)


# --- columns --------------------------------------------------------------------------------------


def halves():
    """A table in two partitions, labels alike, and an estimator that knows the whole."""
    X, y = many_rows(200)
    table = pd.DataFrame(X, columns=list("abcd"))
    labels = in_parts(pd.Series(y[:100]), pd.Series(y[100:]))
    return table.iloc[:100], table.iloc[100:], labels, EnsembleSVC().fit(table, y)


def test_columns_in_another_order_are_put_in_order(client):
    first, second, labels, local = halves()
    X = in_parts(first, second[list("dbca")])
    model = DaskEnsembleSVC(client=client).fit(X, labels)
    np.testing.assert_array_equal(model.dual_coef_, local.dual_coef_)
    expected = local.predict_proba(pd.concat([first, second]))
    for some in (X, in_parts(first[list("cdab")], second)):
        found = predict(local, some, method="predict_proba").compute(scheduler="synchronous")
        np.testing.assert_allclose(found, expected)


def test_missing_and_other_columns_are_named(client):
    first, second, labels, local = halves()
    X = in_parts(first, second.rename(columns={"c": "z"}))
    expected = r"Partition 1 of X lacks the columns \['c'\] and has the columns \['z'\]"
    with pytest.raises(ValueError, match=expected):
        DaskEnsembleSVC(client=client).fit(X, labels)
    with pytest.raises(ValueError, match=expected):
        predict(local, X).compute(scheduler="synchronous")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda c: c.astype(str), r"strings \((object|string)\)"),
        (lambda c: c.astype(str).astype("string"), r"strings \(string\)"),
        (lambda c: c.astype(str).astype("category"), r"categories \(category\)"),
        (lambda c: pd.to_datetime(c), r"dates or times \(datetime64\[ns\]\)"),
    ],
    ids=["object", "string", "category", "dates"],
)
def test_another_type_is_named(change, found, client):
    first, second, labels, local = halves()
    X = in_parts(first, second.assign(b=change(second["b"])))
    expected = (
        rf"Column 'b' has numbers \(float64\) by its declared type, but {found} in partition 1"
    )
    with pytest.raises(ValueError, match=expected):
        DaskEnsembleSVC(client=client).fit(X, labels)
    with pytest.raises(ValueError, match=expected):
        predict(local, X).compute(scheduler="synchronous")


def test_numbers_among_strings_are_named(client):
    first, second, labels, _ = halves()
    X = in_parts(first.assign(b="red"), second)
    with pytest.raises(
        ValueError, match=r"Column 'b' has strings .*, but numbers .* in partition 1"
    ):
        DaskEnsembleSVC(client=client).fit(X, labels)


@pytest.mark.parametrize("kind", ["int64", "float32", "Int64", "bool"])
def test_numbers_of_any_type_are_numbers(kind, client):
    first, second, labels, _ = halves()
    first, second = (part.assign(b=(part["b"] > 0).astype(int)) for part in (first, second))
    local = EnsembleSVC().fit(pd.concat([first, second]).astype(float), labels.compute())
    X = in_parts(first.astype(float), second.assign(b=second["b"].astype(kind)))
    model = DaskEnsembleSVC(client=client).fit(X, labels)
    np.testing.assert_allclose(model.dual_coef_, local.dual_coef_)


def test_float32_in_some_partitions(client):
    first, second, labels, _ = halves()
    model = DaskEnsembleSVC(client=client).fit(in_parts(first, second.astype("float32")), labels)
    assert model.n_samples_fit_ == 200


def test_strings_of_several_types_and_missing_columns(client):
    first, second, labels, _ = halves()
    town = np.where(second["a"] > 0, "Rome", "Oslo")
    table = pd.concat([first.assign(town=None), second.assign(town=town)])
    local = EnsembleSVC().fit(table, labels.compute())
    meta = first.assign(town=pd.Series(dtype="string")).iloc[:0]
    X = in_parts(first.assign(town=np.nan), second.assign(town=pd.Categorical(town)), meta=meta)
    model = DaskEnsembleSVC(client=client).fit(X, labels)
    np.testing.assert_allclose(model.dual_coef_, local.dual_coef_)


def test_labels_of_strings_and_numbers_are_refused(client):
    first, second, _, _ = halves()
    y = in_parts(pd.Series(["a", "b"] * 50), pd.Series([1, 2] * 50))
    with pytest.raises(
        ValueError, match=r"y has strings .* in partition 0, but numbers .* in part"
    ):
        DaskEnsembleSVC(client=client).fit(in_parts(first, second), y)


def test_missing_labels_have_a_partition(client):
    first, second, _, _ = halves()
    y = in_parts(pd.Series(["a", "b"] * 50), pd.Series(["a", None] * 50))
    with pytest.raises(ValueError, match="y has 50 missing labels in partition 1; drop"):
        DaskEnsembleSVC(client=client).fit(in_parts(first, second), y)


@pytest.mark.filterwarnings("ignore:Creating scipy sparse:DeprecationWarning")
def test_sparse_and_dense_partitions_are_named(client):
    def second_sparse(block, block_info):
        return sp.csr_array(block) if block_info[0]["chunk-location"][0] else block

    X = da.ones((40, 3), chunks=(20, 3)).map_blocks(second_sparse, meta=np.empty((0, 0)))
    y = da.from_array(np.arange(40) % 2, chunks=20)
    with pytest.raises(
        ValueError, match="sparse rows in partition 1, but dense rows in partition 0"
    ):
        DaskEnsembleSVC(client=client).fit(X, y)


def test_empty_partitions_and_partitions_of_one_class(client):
    first, second, labels, local = halves()
    table, y = pd.concat([first, second]), labels.compute()
    order = np.argsort(y, kind="stable")
    table, y = table.iloc[order], y.iloc[order]
    ends = [0, 0, 50, 120, 120, 200]
    parts = [slice(*own) for own in pairwise(ends)]
    X = in_parts(
        *(table.iloc[own].astype(object if k == 3 else float) for k, own in enumerate(parts))
    )
    model = DaskEnsembleSVC(client=client).fit(X, in_parts(*(y.iloc[own] for own in parts)))
    local = EnsembleSVC().fit(table, y)
    np.testing.assert_array_equal(model.dual_coef_, local.dual_coef_)
    found = predict(local, X).compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, local.predict(table))


def test_any_estimator_gets_columns_in_order():
    X, y = many_rows(100)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = GreedySVC().fit(table, y)
    rows = dd.from_pandas(table[list("dcba")], npartitions=2)
    found = predict(model, rows).compute(scheduler="synchronous")
    np.testing.assert_array_equal(found, model.predict(table))


# --- predictions among the columns ----------------------------------------------------------------


@pytest.fixture(scope="module")
def model(client):
    """A model whose cells are on the cluster, of columns that `read` gives."""
    table = numbered(700)
    with pytest.MonkeyPatch.context() as patch:
        few_rows_are_many(patch)
        X, y = (dd.from_pandas(own, npartitions=2) for own in (table[list("abc")], table["a"] > 0))
        return DaskEnsembleSVC(client=client, max_cell_rows=300, n_trees=1).fit(X, y)


def with_item(R, p):
    R = R.copy()
    R["p"] = p
    return R


WITH_PREDICTIONS = {
    "assigned": lambda R, model, X: R.assign(p=model.predict(X)),
    "set": lambda R, model, X: with_item(R, model.predict(X)),
    "persisted": lambda R, model, X: R.assign(p=model.predict(X)).persist(),
    "few columns": lambda R, model, X: R.assign(p=model.predict(X))[["n", "p"]],
    "predictions alone": lambda R, model, X: R.assign(p=model.predict(X), n=R["n"])[["p", "n"]],
    "filtered by them": lambda R, model, X: (
        lambda Q: dd.concat([Q[Q["p"]], Q[~Q["p"]]]).sort_values("n")
    )(R.assign(p=model.predict(X))),
    "one part": lambda R, model, X: R.assign(p=model.predict(X)).partitions[1:3],
    "of chances": lambda R, model, X: R.assign(p=model.predict_proba(X)[True] > 0.5),
    "of a local model": lambda R, model, X: R.assign(p=predict(model.to_local(), X)),
}


@pytest.mark.once_per("way")
@pytest.mark.parametrize("way", WITH_PREDICTIONS.values(), ids=WITH_PREDICTIONS)
@pytest.mark.parametrize("reader", ["read", "read_csv"])
def test_predictions_are_columns_of_their_rows(way, reader, model, client, request):
    R = request.getfixturevalue(reader)()
    with client.as_current():
        found = client.compute(way(R, model, R[list("abc")])).result(timeout=60)
    assert len(found) > 0
    rows = numbered().iloc[found["n"].to_numpy()]
    np.testing.assert_array_equal(found["p"], model.to_local().predict(rows[list("abc")]))


def test_predictions_are_compared_with_labels_and_select_rows(model, client, read):
    R = read()
    p = model.predict(R[list("abc")])
    expected = model.to_local().predict(numbered()[list("abc")])
    found = client.compute([(p == (R["a"] > 0)).mean(), R[p]["n"]])
    assert found[0].result(timeout=60) == (expected == (numbered()["a"] > 0)).mean()
    np.testing.assert_array_equal(found[1].result(timeout=60), np.flatnonzero(expected))


def test_queries_go_to_the_cells(model, read):
    """No task needs all cells."""
    R = read()
    graph = R.assign(p=model.predict(R[list("abc")])).optimize().__dask_graph__()
    n_bundles = len(model._mixture_.layers[0].parts)
    assert n_bundles > 1
    assert sum(str(key).startswith("_logs-") for key in graph) == n_bundles * R.npartitions


# Dask joins partitions of a read of few columns, and then puts other rows side by side.
COUNTS = {
    "values": lambda Q: Q["p"].value_counts().sum(),
    "groups": lambda Q: Q.groupby("p").size().sum(),
    "pairs": lambda Q: Q.groupby(["p", "q"]).size().sum(),
    "mean": lambda Q: (Q["p"] == Q["q"]).sum(),
}


@pytest.mark.parametrize("count", COUNTS.values(), ids=COUNTS)
def test_no_rows_of_predictions_are_lost(count, read):
    R = read()
    model = GreedySVC().fit(numbered()[list("abc")], numbered()["a"] > 0)
    p = predict(model, R[list("abc")])
    found = count(R.assign(p=p, q=R["n"] >= 0)).compute(scheduler="synchronous")
    local = model.predict(numbered()[list("abc")])
    assert found == (local.sum() if count is COUNTS["mean"] else N_ROWS)


@pytest.mark.parametrize(
    "made",
    [
        lambda R: R[R.a > 0],
        lambda R: R.sort_values("a"),
        lambda R: R.repartition(npartitions=4),
        lambda R: R.persist(),
        lambda R: R.set_index("n", drop=False),
        lambda R: R.assign(b=R.a + 1),
    ],
    ids=["filtered", "sorted", "repartitioned", "persisted", "indexed", "assigned"],
)
def test_predictions_are_columns_of_any_frame(made, read, client):
    with client.as_current():
        R = made(read())
        local = GreedySVC().fit(numbered()[list("ab")], numbered()["a"] > 0)
        Q = R.assign(p=predict(local, R[list("ab")]))
        found, rows = client.gather(client.compute([Q[["n", "p"]], R[list("nab")]]))
    assert found["n"].tolist() == rows["n"].tolist()
    np.testing.assert_array_equal(found["p"], local.predict(rows[list("ab")]))


def test_predictions_of_strings_are_strings_of_dask(client, read):
    R = read()
    model = GreedySVC().fit(numbered()[list("abc")], np.where(numbered()["a"] > 0, "yes", "no"))
    Q = R.assign(p=predict(model, R[list("abc")]))
    assert Q["p"].dtype == "string"
    counts = client.compute(Q.groupby("p").size()).result(timeout=60)
    assert counts.sum() == N_ROWS


def test_rows_that_were_lost_are_not_a_lost_cluster(client, monkeypatch):
    def gather(tasks):
        raise FutureCancelledError("rows", "lost dependencies")

    cluster = Cluster(client)
    task = cluster.submit(int)
    monkeypatch.setattr(client, "gather", gather)
    with pytest.raises(ConnectionError, match="was persisted, see whether its own compute"):
        cluster.results([task])
