#!/bin/sh
# The shared tracking server in the foreground: mlflow/serve.sh [settings file]. Settings: server.env.example.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
settings=${1:-$here/server.env}
if [ -f "$settings" ]; then
    set -a
    # shellcheck disable=SC1090
    . "$settings"
    set +a
elif [ $# -gt 0 ]; then
    echo "serve.sh: no settings file $settings; copy $here/server.env.example" >&2
    exit 2
fi
if [ -z "${MLFLOW_BACKEND_STORE_URI:-}" ]; then
    echo "serve.sh: MLFLOW_BACKEND_STORE_URI is not set; copy $here/server.env.example to $here/server.env" >&2
    exit 2
fi

# MLflow's background jobs serve other purposes than runs, and cost eight processes.
MLFLOW_SERVER_ENABLE_JOB_EXECUTION=${MLFLOW_SERVER_ENABLE_JOB_EXECUTION:-false}
MLFLOW_DISABLE_TELEMETRY=${MLFLOW_DISABLE_TELEMETRY:-true}
export MLFLOW_SERVER_ENABLE_JOB_EXECUTION MLFLOW_DISABLE_TELEMETRY

artifacts=${MLFLOW_ARTIFACTS:-$here/artifacts}
case $artifacts in
    *://*) ;;
    *) mkdir -p -- "$artifacts" ;;
esac

set -- --backend-store-uri "$MLFLOW_BACKEND_STORE_URI" --artifacts-destination "$artifacts" \
    --host "${MLFLOW_LISTEN:-127.0.0.1}" --port "${MLFLOW_PORT:-5000}" --workers "${MLFLOW_WORKERS:-2}"
if [ -n "${MLFLOW_ALLOWED_HOSTS:-}" ]; then
    set -- "$@" --allowed-hosts "$MLFLOW_ALLOWED_HOSTS"
fi
if [ -n "${MLFLOW_AUTH_CONFIG_PATH:-}" ]; then
    set -- "$@" --app-name basic-auth
fi
# The environment's own Python, where one is active or lies beside the checkout.
python=${PYTHON:-python3}
if [ -z "${PYTHON:-}" ] && [ -z "${VIRTUAL_ENV:-}" ] && [ -x "$here/../.venv/bin/python" ]; then
    python=$here/../.venv/bin/python
fi
exec "$python" -m mlflow server "$@"
