"""From a job, supply and terms to ranked, priced options; nothing is persisted here."""
