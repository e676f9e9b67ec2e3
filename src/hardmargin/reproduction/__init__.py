"""The papers' experiments: every table and figure as a part, ours beside theirs.

``hardmargin reproduce`` runs them. One concept per file:

- `parts`: what a reproduction is made of, and how to add a part;
- ``ijcai07``, ``mcs06``, ``tnn08``, ``esann99``: one folder per paper, with its tables and figures
  in ``parts`` and their work in the modules beside it; `registry` lists all parts;
- `paper_numbers` reads the papers' numbers, `sources` the data, `limits` cuts what takes too long;
- `runner` runs tasks and keeps finished work, `verdicts` judges, ``report`` writes.
"""
