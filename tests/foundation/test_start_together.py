"""Processes that start at the same moment on one new database: each is ready, and the catalog is there once."""

import os
import subprocess
import sys
import time
from pathlib import Path

from sqlalchemy import text

from app.foundation.database import Database

ROOT = Path(__file__).resolve().parents[2]
TOGETHER = 4
START = """
import sys, time
from app.__main__ import prepare
from app.foundation.settings import Settings
while time.time() < float(sys.argv[1]):
    pass
prepare(Settings())
"""


def test_processes_that_start_together_are_all_ready(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    environment = {**os.environ, "GPUQUOTE_DATABASE_URL": url, "GPUQUOTE_LOG_LEVEL": "ERROR"}
    moment = str(time.time() + 3.0)
    started = [
        subprocess.Popen([sys.executable, "-c", START, moment], cwd=ROOT, env=environment, stderr=subprocess.PIPE)
        for _ in range(TOGETHER)
    ]
    said = [process.communicate(timeout=300)[1].decode() for process in started]
    assert [process.returncode for process in started] == [0] * TOGETHER, "\n".join(said)
    database = Database(url)
    try:
        count = database.read_now(lambda c: c.execute(text("SELECT count(*) FROM catalog_revision")).scalar_one())
    finally:
        database.close()
    assert count == 1
