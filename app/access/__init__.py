"""Who may do what: tenants, principals, keys, scopes, rate limits, audit."""
