"""L2-SVMs and balls on core sets, machines orthogonal to each other, and their exact rivals."""
