"""Training: memory, time of a step, plans and their search, calibration."""
