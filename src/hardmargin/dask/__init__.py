"""Training and predictions on a Dask cluster, for data that one computer cannot hold.

:class:`DaskEnsembleSVC` is :class:`hardmargin.EnsembleSVC` on collections. The rows stay on the
workers. The client draws samples of them (for the vote on a sample, and for the cuts), and keeps
the class, the weight and the cells of every row. Each block of rows is cut up by cells, the pieces
are shuffled, and each cell is one task. If a worker dies, Dask runs its tasks again, with the same
result.

:func:`predict` applies any fitted estimator to collections, chunk by chunk.
"""

from hardmargin.dask.estimator import DaskEnsembleSVC
from hardmargin.dask.predictions import predict

__all__ = ["DaskEnsembleSVC", "predict"]
