"""Models in files, which can be loaded without trusting whoever made them.

A pickle runs what its file says. A skops file holds numbers, and the names of types: `load` makes
objects of the types listed here (and of those that skops trusts: numpy's, SciPy's and
scikit-learn's), and refuses everything else by name. A file that was cut short or changed is
refused as well, and so is one that takes far more memory than its size. `parts` unpacks files, and
`objects` builds what is in them.

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from sklearn.datasets import load_iris
>>> from hardmargin import EnsembleSVC
>>> from hardmargin.io import dump, load
>>> model = EnsembleSVC().fit(*load_iris(return_X_y=True))
>>> with TemporaryDirectory() as folder:
...     load(dump(model, Path(folder, "iris.skops")))
EnsembleSVC()
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import hardmargin
from hardmargin.io.objects import Objects
from hardmargin.io.parts import ByteLimit, Parts, TooLargeError, limit_of

__all__ = ["ModelFileError", "dump", "load", "notes_of", "write_whole"]

#: The entry of a file that says what it is.
ABOUT = "hardmargin.json"

#: How current pickles begin.
PICKLE = b"\x80"

#: Files of a later format are refused.
FORMAT = 1

#: What skrub's TableVectorizer is made of, which pipelines for raw tables begin with.
TABLE_VECTORIZER = (
    "_apply_to_each_col.ApplyToEachCol",
    "_check_input.CheckInputDataFrame",
    "_clean_categories.CleanCategories",
    "_clean_null_strings.CleanNullStrings",
    "_dataframe._common.is_any_date",
    "_dataframe._common.is_categorical",
    "_dataframe._common.is_numeric",
    "_datetime_encoder.DatetimeEncoder",
    "_drop_uninformative.DropUninformative",
    "_duration_to_float.DurationToFloat",
    "_string_encoder.StringEncoder",
    "_table_vectorizer.PassThrough",
    "_table_vectorizer.ShortReprDict",
    "_table_vectorizer.TableVectorizer",
    "_table_vectorizer._created_by_predicate",
    "_to_categorical.ToCategorical",
    "_to_datetime.ToDatetime",
    "_to_float.ToFloat",
    "_to_str.ToStr",
    "selectors._base.All",
    "selectors._base.And",
    "selectors._base.Cols",
    "selectors._base.Filter",
    "selectors._base.Sub",
    "selectors._selectors._cardinality_below",
)

#: Splitters that `cv` may be, here and in what wraps our models.
SPLITTERS = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePGroupsOut",
    "PredefinedSplit",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
)

#: Types that our fitted models are made of, besides those that skops trusts. A type that moves must
#: stay importable from here: files name it.
TRUSTED = (
    "hardmargin.cells.cuts.Cuts",
    "hardmargin.cells.experts.Experts",
    "hardmargin.cells.experts.SampleVote",
    "hardmargin.cells.layer.Layer",
    "hardmargin.estimators._base.categories.Categories",
    "hardmargin.estimators._base.classifier.Training",
    "hardmargin.estimators._base.missing.Filling",
    "hardmargin.estimators._base.mixed_scaling.MixedScaling",
    "hardmargin.estimators._base.planes.Stages",
    "hardmargin.estimators._base.scaling.Scaling",
    "hardmargin.estimators._base.second_layer.MachineVote",
    "hardmargin.estimators._base.soft_margin.SoftMarginSVC",
    "hardmargin.estimators.core_vector.CoreVectorSVC",
    "hardmargin.estimators.discriminant.MarginDiscriminantAnalysis",
    "hardmargin.estimators.diversified.DiversifiedSVC",
    "hardmargin.estimators.enclosing_ball.MinimumEnclosingBall",
    "hardmargin.estimators.ensemble.EnsembleSVC",
    "hardmargin.estimators.experts.Experts",
    "hardmargin.estimators.experts.Whole",
    "hardmargin.estimators.greedy.GreedySVC",
    "hardmargin.estimators.hard_margin.HardMarginSVC",
    "hardmargin.estimators.multiplicative.MultiplicativeSVC",
    "hardmargin.estimators.parzen.ParzenClassifier",
    "hardmargin.estimators.path.PathSVC",
    "hardmargin.estimators.rho.RhoSVC",
    "hardmargin.estimators.rho_ensemble.RhoEnsembleSVC",
    "hardmargin.estimators.rigorous.RigorousSVC",
    "hardmargin.kernels.kernel.Kernel",
    "hardmargin.kernels.kernel.KernelRows",
    "hardmargin.kernels.kernel_sum.KernelSum",
    "hardmargin.kernels.views.Ranks",
    "hardmargin.kernels.views.View",
    "hardmargin.reduction.expansion.Compression",
    "hardmargin.scaling.columns.Scaling",
    "hardmargin.scaling.mixed.MixedScaling",
    "hardmargin.selection.calibration.Calibration",
    "hardmargin.selection.frequencies.Frequencies",
    "hardmargin.selection.mixture.LogProbabilities",
    "hardmargin.selection.vote.Losses",
    "hardmargin.solvers.regularization_path.record.RegularizationPath",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.metrics._scorer._PassthroughScorer",
    *(f"sklearn.model_selection._split.{name}" for name in SPLITTERS),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    *(f"skrub.{name}" for name in TABLE_VECTORIZER),
)


class ModelFileError(ValueError):
    """A file that cannot be loaded; the message says which one, and why."""


def dump(
    model: Any, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
) -> Path:
    """Save a model, or a pipeline that contains one.

    The file is complete or absent: it is written under another name first.

    Parameters
    ----------
    model : estimator
        Fitted or not.
    path : str or path
        The file, usually called ``*.skops``; an existing one is replaced.
    notes : mapping, optional
        What else to keep, of JSON's types; see `notes_of`.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    about = {
        "format": FORMAT,
        "hardmargin": hardmargin.__version__,
        "model": type(model).__name__,
        "notes": dict(notes or {}),
    }

    def write(unfinished: Path) -> None:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            _write_as_skops(model, archive)
            archive.writestr(ABOUT, json.dumps(about, indent=1))

    write_whole(path, write)
    return path


def _write_as_skops(model: Any, archive: zipfile.ZipFile) -> None:
    """Write what `skops.io.dump` does, whose indented JSON takes seconds for a vocabulary."""
    version = _skops().__version__
    from skops.io._utils import SaveContext, get_state

    context = SaveContext(zip_file=archive)
    state = get_state(model, context)  # also writes the arrays
    state |= {"protocol": context.protocol, "_skops_version": version}
    archive.writestr("schema.json", json.dumps(state))


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file under another name first, so that it is complete or absent.

    Parameters
    ----------
    path : Path
        The file; an existing one is replaced.
    write : callable
        Writes to the path that it is given.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    unfinished = path.parent / f".{path.name}.{secrets.token_urlsafe(6)}{path.suffix}"
    try:
        # With ordinary permissions, which the system takes from the process; tempfile denies most.
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        write(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Iterable[str] = (),
    max_bytes: int | None = None,
) -> Any:
    """Load a model.

    Parameters
    ----------
    path : str or path
        A file made by `dump`.
    trusted : iterable of str
        Names of other types and functions that the file may contain, such as a kernel function of
        yours. Building them may run code: name only what you know.
    max_bytes : int, optional
        The most memory that the model may take: what its arrays unpack to, and what its other parts
        become. By default 512 MB or, if that is more, a hundred times the size of the file.

    Returns
    -------
    estimator

    Raises
    ------
    ModelFileError
        If it is not such a file, was changed or cut short, contains other types, or takes more than
        `max_bytes`, which is known before the memory is taken.
    """
    path, vouched = Path(path), set(trusted)
    if max_bytes is not None and not (isinstance(max_bytes, Integral) and max_bytes > 0):
        raise ValueError(f"max_bytes must be a number of bytes or None, got {max_bytes!r}.")
    with _opened(path, max_bytes) as parts:
        saved_by = _about(path, parts)["hardmargin"]
        try:
            objects = Objects(parts, TRUSTED, vouched)
            strange = objects.untrusted()
            if not strange and not objects.are_for_skops():
                return objects.build()
            if not strange:
                strange, model = _built_by_skops(parts, vouched)
                if not strange:
                    return model
        except TooLargeError as error:
            raise _too_large(path, error) from None
        except (ImportError, AttributeError) as error:
            raise ModelFileError(
                f"{path} needs something that is not installed here ({error}); it was saved by "
                f"hardmargin {saved_by}, this is {hardmargin.__version__}."
            ) from error
        except Exception as error:
            raise ModelFileError(f"{path} is damaged: {error}.") from error
    raise ModelFileError(
        f"{path} contains types that models of hardmargin do not have. If you know who made it, "
        f"load it with trusted={strange}."
    )


def _built_by_skops(parts: Parts, vouched: set[str]) -> tuple[list[str], Any]:
    """Build what only skops can; return names of types instead that nobody vouches for."""
    skops, known, data = _skops().io, {*TRUSTED, *vouched}, parts.stored()
    strange = [name for name in skops.get_untrusted_types(data=data) if name not in known]
    return strange, None if strange else skops.loads(data, trusted=sorted(known))


def notes_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what was kept with a model, without loading it.

    Parameters
    ----------
    path : str or path
        A file made by `dump`.

    Returns
    -------
    dict
        The notes, and under ``"hardmargin"`` the version that saved the file.
    """
    with _opened(Path(path), only=ABOUT) as parts:
        about = _about(Path(path), parts)
    return {"hardmargin": about["hardmargin"], **about["notes"]}


@contextmanager
def _opened(path: Path, max_bytes: int | None = None, only: str | None = None) -> Iterator[Parts]:
    """Open a file, or say what is there instead."""
    try:
        limit = ByteLimit(limit_of(path) if max_bytes is None else int(max_bytes))
        parts = Parts(path, limit, only)
    except FileNotFoundError:
        raise
    except IsADirectoryError:
        raise ModelFileError(f"{path} is a folder.") from None
    except TooLargeError as error:
        raise _too_large(path, error) from None
    except Exception as error:
        with path.open("rb") as file:
            is_pickle = file.read(1) == PICKLE
        if is_pickle:
            raise ModelFileError(
                f"{path} looks like a pickle. joblib.load reads it, and runs what it says: do so "
                "only if you made it."
            ) from None
        raise ModelFileError(
            f"{path} is not a model file, or it was cut short or changed ({error})."
        ) from error
    with parts:
        yield parts


def _too_large(path: Path, error: TooLargeError) -> ModelFileError:
    [n_bytes] = error.args
    size = path.stat().st_size
    return ModelFileError(
        f"{path} has {size:,} bytes, and would take {n_bytes:,} or more in memory, which is more "
        f"than it may. If you know who made it, load it with max_bytes={n_bytes} or more "
        "(--max-bytes at the command line)."
    )


def _about(path: Path, parts: Parts) -> dict[str, Any]:
    """Read what a file says about itself."""
    try:
        about = parts.json(ABOUT)
    except KeyError:
        raise ModelFileError(
            f"{path} was not saved by hardmargin.io.dump. If you know who made it, read it with "
            "skops.io.load."
        ) from None
    except TooLargeError as error:
        raise _too_large(path, error) from None
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: {error}.") from error
    if not isinstance(about, dict) or not isinstance(about.get("format"), int):
        raise ModelFileError(f"{path} does not say which version of hardmargin saved it.")
    about = {"hardmargin": "unknown", "notes": {}, **about}
    if not isinstance(about["notes"], dict):
        raise ModelFileError(f"{path} is damaged: its notes are not a JSON object.")
    if about["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was saved by hardmargin {about.get('hardmargin')}; this is "
            f"{hardmargin.__version__}, which cannot read it. Install a later version."
        )
    return about


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError(
            "Saving models needs skops: pip install 'hardmargin[save]'. (joblib.dump needs nothing "
            "else, but load its files only if you trust them.)"
        ) from None
    return skops
