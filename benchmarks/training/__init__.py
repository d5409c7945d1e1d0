"""Training rows, their plans, and the fit of the training engine to them."""
