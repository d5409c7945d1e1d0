"""The performance engine: pure functions from a job, hardware and a plan to time, memory and tokens per second."""
