"""Exports of a stored revision in other systems' formats: UBL, FOCUS, cXML, OCI, canonical JSON, and TMF648 to read."""
