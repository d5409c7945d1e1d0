"""Persisted quotes: numbered, hashed revisions, their ten states, what was accepted, and how two of them differ."""
