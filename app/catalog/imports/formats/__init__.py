"""Price files of other systems, each put into our own columns and staged like our own."""
