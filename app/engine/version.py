"""Version of the engine's physics and parameters. Moves with every change that moves a golden number."""

ENGINE_VERSION = "1.9.0"
