"""The papers' experiments: every table and figure as a part, ours beside theirs.

``hardmargin reproduce`` runs them. One concept a file:

- `parts`: what a reproduction is made of, and how to add a part;
- ``ijcai07``, ``mcs06``, ``tnn08``, ``esann99``: the parts of each paper, their work beside them in
  ``ijcai07_tasks``, ``mcs06_tasks`` and ``mcs06_machines``, ``tnn08_tasks`` (large sets),
  ``tnn08_benchmarks`` and ``tnn08_protocol``; `registry` has all;
- `paper_numbers` reads the papers' numbers, `sources` the data, `limits` cuts what takes too long;
- `runner` runs tasks and keeps what is finished, `verdicts` judges, ``report`` writes.
"""
