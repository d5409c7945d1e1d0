"""Published model configurations (``config.json``) read as they are."""

from app.engine.huggingface.model import PublishedModel, read_config
from app.engine.huggingface.quantization import StatedQuantization

__all__ = ["PublishedModel", "StatedQuantization", "read_config"]
