"""What the package ships: data files with their sources, read into records and price rows."""
