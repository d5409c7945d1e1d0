"""What we measure ourselves against: accuracy, calibration, speed."""
