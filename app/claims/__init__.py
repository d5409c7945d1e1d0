"""Claims and comparisons: checks a claimed figure against the engine, with evidence, and says when it would hold."""
