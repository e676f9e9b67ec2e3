"""Export to ONNX: fitted models as graphs that run without Python, in onnxruntime for instance.

:func:`to_onnx` converts an estimator, or a pipeline that contains one; after
:func:`register_converters`, skl2onnx's own functions can do so as well. Both need the extra
``onnx``: ``pip install 'hardmargin[onnx]'``.

A graph computes what ``predict`` and ``predict_proba`` do, whatever the type of its input, in
float64, and kernels in float32 where the model does so:

1. ``table``: columns become one matrix; categories become numbers, missing numbers are filled.
2. ``scaling``: rows are clipped and standardised, and seen through the views of the kernels.
3. ``expansion``: kernel values times coefficients give the margins of the machines.
4. ``probabilities``: margins become labels and probabilities.

``cells`` does the same for mixtures of experts, where every row only needs the machines of its
cells. ``graph`` writes nodes, ``converters`` tells skl2onnx about all this, and ``agreement``
compares the result with the model.
"""

from __future__ import annotations

from typing import Any

__all__ = ["register_converters", "to_onnx"]


def to_onnx(
    model: Any,
    X: Any,
    *,
    target_opset: int | dict[str, int] | None = None,
    options: dict[Any, Any] | None = None,
) -> Any:
    """Convert a fitted estimator, or a fitted pipeline that contains one, to an ONNX model.

    Parameters
    ----------
    model : fitted estimator or pipeline
        `EnsembleSVC`, `GreedySVC`, `CoreVectorSVC`, `MarginDiscriminantAnalysis`, or any other
        classifier of this package that is one expansion (not `DiversifiedSVC`); in a pipeline, the
        other steps must have converters in skl2onnx.
    X : int, array or data frame
        What the graph takes: the number of columns, or rows that show their number and type. An
        array gives one input ``X``, of float64 for a number; a data frame gives one input of shape
        (n, 1) per column, with the column's name. Numbers and booleans with gaps take floats, NaN
        for a missing one; columns of strings, other objects and categories take strings, an empty
        one for a missing value. Up to 100 of the rows are classified by the
        graph too; there is a warning if the result differs from that of the model.
    target_opset : int or dict, optional
        Version of the ONNX operators, at least 15; by default, the latest that skl2onnx knows.
    options : dict, optional
        Options of skl2onnx's converters. ``{"zipmap": False}`` is the default here: probabilities
        are an array, not a list of dictionaries. ``{"raw_scores": True}`` gives the scores of
        the classes instead of their probabilities.

    Returns
    -------
    onnx.ModelProto
        ``SerializeToString()`` gives the bytes of a file, and what onnxruntime's
        ``InferenceSession`` takes. The outputs of a classifier are ``label`` of shape (n,), and
        ``probabilities`` of shape (n, n_classes), in the order of ``classes_``; for a classifier
        without ``predict_proba``, scores, of which the label has the largest.

    Notes
    -----
    Probabilities differ from ``predict_proba`` by less than 1e-4: hardly at all where the model
    evaluates kernels in float64, and by about 1e-5 where it does so in float32, as models of more
    than 5,000 rows do by default. Give float64 rows if you can: a graph of float32 input rounds
    rows before anything else, as the steps of a pipeline then do.
    Some steps, such as `SimpleImputer`, only take float32 in onnxruntime. `EnsembleSVC` and
    `GreedySVC` fill missing values themselves, in either type.

    A graph takes rows in blocks, so its memory does not grow with the rows of a call. Support rows
    are dense in it, even where a model was trained on sparse rows; a warning says so if they take
    much more memory. :func:`hardmargin.compress` makes models smaller.

    Kernels that are callables or precomputed have no graph, and raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> from onnxruntime import InferenceSession
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import EnsembleSVC
    >>> from hardmargin.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = EnsembleSVC().fit(X, y)
    >>> session = InferenceSession(to_onnx(clf, X).SerializeToString())
    >>> label, probabilities = session.run(None, {"X": X[::50]})
    >>> label.tolist()
    [0, 1, 2]
    >>> bool(np.abs(probabilities - clf.predict_proba(X[::50])).max() < 1e-4)
    True
    """
    return _converters().convert(model, X, target_opset=target_opset, options=options)


def register_converters() -> None:
    """Let skl2onnx convert the estimators of this package, alone and in pipelines.

    It may be called more than once.

    Examples
    --------
    >>> import skl2onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from hardmargin import GreedySVC
    >>> from hardmargin.onnx import register_converters
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(PCA(2), GreedySVC()).fit(X, y)
    >>> register_converters()
    >>> [output.name for output in skl2onnx.to_onnx(pipeline, X).graph.output]
    ['output_label', 'output_probability']
    """
    _converters().register()


def _converters() -> Any:
    try:
        from hardmargin.onnx import converters
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("onnx", "onnxruntime", "skl2onnx"):
            raise
        raise ImportError(
            f"Export to ONNX needs {error.name}, which is not installed: "
            "pip install 'hardmargin[onnx]'."
        ) from error
    return converters
