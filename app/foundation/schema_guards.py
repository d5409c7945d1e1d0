"""What a migration adds to a table beyond columns: row-level security and triggers that refuse changes."""

from alembic import op

from app.foundation.tenancy import APP_ROLE, SYSTEM_ROLE


def _is_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def create_service_roles() -> None:
    """Create the two roles that own nothing, once per PostgreSQL server, and give them tables made from now on."""
    if not _is_postgresql():
        return
    for role in (APP_ROLE, SYSTEM_ROLE):
        op.execute(
            f"DO $$ BEGIN CREATE ROLE {role} NOLOGIN NOINHERIT NOBYPASSRLS;"
            " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        )
        op.execute(
            f"DO $$ BEGIN IF NOT pg_has_role(current_user, '{role}', 'MEMBER') THEN"
            f" EXECUTE format('GRANT {role} TO %I', current_user); END IF; END $$"
        )
        op.execute(f"GRANT USAGE ON SCHEMA public TO {role}")
        op.execute(
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role}"
        )
        op.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {role}")
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
        op.execute(f"REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {role}")


def withdraw_service_roles() -> None:
    """Undo the grants; the roles stay, because other databases of the server may use them."""
    if not _is_postgresql():
        return
    for role in (APP_ROLE, SYSTEM_ROLE):
        op.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}")
        op.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON TABLES FROM {role}")
        op.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON SEQUENCES FROM {role}")
        op.execute(f"REVOKE USAGE ON SCHEMA public FROM {role}")


def protect_tenant_table(table: str, *, column: str = "tenant_id") -> None:
    """Put a table with a tenant column behind row-level security, forced on its owner too (PostgreSQL)."""
    if not _is_postgresql():
        return
    mine = f"{column} = NULLIF(current_setting('app.tenant_id', true), '')"
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY {table}_tenant ON {table} TO {APP_ROLE} USING ({mine}) WITH CHECK ({mine})")
    op.execute(f"CREATE POLICY {table}_system ON {table} TO {SYSTEM_ROLE} USING (true) WITH CHECK (true)")


def guard_append_only(table: str) -> None:
    """Refuse UPDATE and DELETE of the table's rows in the database itself. Call again after a batch migration."""
    message = f"{table} is append-only"
    if _is_postgresql():
        op.execute(f"REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {APP_ROLE}, {SYSTEM_ROLE}")
        op.execute(
            f"CREATE FUNCTION {table}_refuse() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'restrict_violation'; END $$"
        )
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION {table}_refuse()"
        )
        return
    for action in ("update", "delete"):
        op.execute(
            f"CREATE TRIGGER {table}_no_{action} BEFORE {action.upper()} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )


def unguard_append_only(table: str) -> None:
    """Remove the guard, before the table is dropped or rebuilt."""
    if _is_postgresql():
        op.execute(f"DROP TRIGGER {table}_append_only ON {table}")
        op.execute(f"DROP FUNCTION {table}_refuse()")
        return
    for action in ("update", "delete"):
        op.execute(f"DROP TRIGGER {table}_no_{action}")
