"""The papers' experiments, one module a paper: our numbers beside theirs."""
