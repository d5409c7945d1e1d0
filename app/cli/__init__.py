"""The command line ``gpuquote``: tables for people, ``--json`` for machines, exit codes that scripts can rely on."""

from app.cli.main import run

__all__ = ["run"]
