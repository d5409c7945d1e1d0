# Two stages: the first has what building needs, the second only what serving needs, under a user that owns nothing.
FROM python:3.11-slim AS build
WORKDIR /srv/gpuquote
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.txt .
RUN python -m venv .venv && .venv/bin/pip install -q --require-hashes -r requirements.txt
COPY alembic.ini ./
COPY migrations migrations
COPY app app
RUN .venv/bin/python -m compileall -q app migrations

FROM python:3.11-slim
WORKDIR /srv/gpuquote
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin gpuquote \
    && mkdir var && chown gpuquote var
COPY --from=build /srv/gpuquote /srv/gpuquote
ENV PATH=/srv/gpuquote/.venv/bin:$PATH PYTHONUNBUFFERED=1 \
    GPUQUOTE_HOST=0.0.0.0 GPUQUOTE_PORT=8000
USER 10001
EXPOSE 8000
VOLUME /srv/gpuquote/var
# Seeding a new catalog takes a while; until then /healthz says 503.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD \
    ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['GPUQUOTE_PORT'] + '/healthz', timeout=4)"]
CMD ["python", "-m", "app"]
