"""Settings from the environment, all named GPUQUOTE_*."""

import ipaddress

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.foundation.engines import database_url


class Settings(BaseSettings):
    """What an operator may set. Every default is for one person on one machine: SQLite, loopback, no keys."""

    model_config = SettingsConfigDict(env_prefix="GPUQUOTE_", extra="ignore", frozen=True)

    database_url: str = "sqlite:///var/gpuquote.db"
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    workers: int | None = Field(default=None, ge=1, le=64)
    log_level: str = "INFO"
    log_format: str = Field(default="json", pattern="^(json|text)$")

    # Prometheus metrics at /metrics: auto = only while the service itself is on loopback.
    metrics: str = Field(default="auto", pattern="^(auto|off|public)$")

    # Signs cursors and share links. Must be set, the same on every worker, where the service is reachable by others.
    secret: SecretStr | None = None
    # Newest first: keys are made with the first pepper and accepted with any of them.
    peppers: SecretStr | None = None

    public_url: str = "http://127.0.0.1:8000"
    problems_url: str = "https://gpuquote.example/problems"
    max_body_bytes: int = Field(default=2_000_000, ge=1_000)
    max_upload_bytes: int = Field(default=50_000_000, ge=1_000)
    write_queue_limit: int = Field(default=1_000, ge=1)
    # Whether this process numbers events, sends webhooks and runs jobs, beside answering requests.
    background_work: bool = True
    # How long a calculation may take [s]: in a request, and in a job.
    calculation_budget_s: float = Field(default=50.0, gt=0, le=3_600)
    job_budget_s: float = Field(default=900.0, gt=0, le=86_400)
    # Whether commands may fetch prices from the network. Nothing is ever fetched by itself.
    live_feeds: bool = False
    read_threads: int = Field(default=4, ge=1, le=64)
    rate_limit_per_minute: int = Field(default=600, ge=1)

    # Names a browser may use for the loopback default: a page of another site cannot reach it under a name of its own.
    loopback_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")

    # OpenID Connect: tokens of one issuer, for one audience, with fixed algorithms.
    oidc_issuer: str | None = None
    oidc_audience: str | None = None
    oidc_jwks_url: str | None = None
    oidc_algorithms: tuple[str, ...] = ("RS256", "ES256")
    oidc_tenant_claim: str = "tenant_id"

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        database_url(value)
        return value

    @property
    def on_loopback(self) -> bool:
        """Whether the address to serve on is reachable from this machine only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def serves_metrics(self) -> bool:
        """Whether /metrics answers; what it tells about load is for the operator, not for the public."""
        return self.metrics == "public" or (self.metrics == "auto" and self.on_loopback)

    @property
    def uses_sqlite(self) -> bool:
        return database_url(self.database_url).get_backend_name() == "sqlite"

    @property
    def worker_count(self) -> int:
        """SQLite has one writer: a second process only adds waiting (p99 7 ms became 757 ms when measured)."""
        return 1 if self.uses_sqlite else (self.workers or 2)

    @property
    def pepper_list(self) -> tuple[tuple[str, bytes], ...]:
        """Peppers of key hashes as (id, value), newest first; written ``id:value,id:value``."""
        if self.peppers is None:
            return (("signing", self.signing_key),)
        pairs = [item.partition(":") for item in self.peppers.get_secret_value().split(",")]
        if any(not separator or not name.strip() or len(value.strip()) < 16 for name, separator, value in pairs):
            raise ValueError("GPUQUOTE_PEPPERS is written id:value,id:value with values of 16 characters or more")
        return tuple((name.strip(), value.strip().encode()) for name, _, value in pairs)

    @property
    def signing_key(self) -> bytes:
        """Key of cursors and links. The fixed one guards nothing: it is used on loopback, where nothing is guarded."""
        if self.secret is not None:
            return self.secret.get_secret_value().encode()
        if not self.on_loopback:
            raise ValueError("GPUQUOTE_SECRET must be set when the service is reachable from other machines")
        return b"gpuquote loopback development"
