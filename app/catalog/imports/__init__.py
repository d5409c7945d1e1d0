"""Price imports: file formats, normalisation, checks, and the difference to what the catalog holds."""
