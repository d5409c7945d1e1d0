"""What every room stands on: settings, database, problems, idempotency, paging, clock, telemetry. No business words."""
