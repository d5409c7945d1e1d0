# Sourced by .ci/run: start_postgres sets GPUQUOTE_TEST_POSTGRES_URL, stop_postgres removes what it made.
# Uses a server that lets us in as a superuser on the default socket, else starts one of its own on a free port.

gq_database=gpuquote_ci_$$
gq_own_dir=""

as_postgres() {
  if [ "$(id -u)" = 0 ]; then
    (cd /tmp && runuser -u postgres -- "$@")
  else
    (cd /tmp && "$@")
  fi
}

postgres_bin() {
  local found
  found=$(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -V | tail -n 1)
  [ -n "$found" ] && [ -x "$found/initdb" ] && echo "$found"
}

start_postgres() {
  gq_socket=/var/run/postgresql gq_port=5432
  if ! psql -qAt -h $gq_socket -p $gq_port -d postgres -c 'SELECT 1' >/dev/null 2>&1; then
    if [ -z "$(postgres_bin)" ]; then
      apt-get update -q >/dev/null
      DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql >/dev/null
    fi
    gq_own_dir=$(mktemp -d /tmp/gpuquote-pg.XXXXXX)
    gq_port=$((20000 + RANDOM % 20000)) gq_socket=$gq_own_dir
    if [ "$(id -u)" = 0 ]; then chown postgres "$gq_own_dir"; fi
    as_postgres "$(postgres_bin)/initdb" -D "$gq_own_dir/data" -A trust -U "$(id -un)" -E UTF8 >/dev/null
    as_postgres "$(postgres_bin)/pg_ctl" -D "$gq_own_dir/data" -w -l "$gq_own_dir/log" \
      -o "-p $gq_port -k $gq_own_dir -c listen_addresses='' -c fsync=off" start >/dev/null
  fi
  psql -qAt -h $gq_socket -p $gq_port -d postgres -c "CREATE DATABASE $gq_database"
  export GPUQUOTE_TEST_POSTGRES_URL="postgresql+psycopg://$(id -un)@/$gq_database?host=$gq_socket&port=$gq_port"
}

stop_postgres() {
  psql -qAt -h $gq_socket -p $gq_port -d postgres -c "DROP DATABASE IF EXISTS $gq_database WITH (FORCE)" 2>/dev/null || true
  if [ -n "$gq_own_dir" ]; then
    as_postgres "$(postgres_bin)/pg_ctl" -D "$gq_own_dir/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$gq_own_dir"
  fi
}
