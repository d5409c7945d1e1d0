"""Money: exact, dated, explained. Pure: no I/O, no clock, no binary floating point."""
