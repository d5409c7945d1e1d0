"""Who hears of it: the outbox, the pull feed, webhooks."""
