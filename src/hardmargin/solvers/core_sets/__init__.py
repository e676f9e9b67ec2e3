"""L2-SVMs, orthogonal to each other, by core sets, Newton or Lagrangian; enclosing balls."""
