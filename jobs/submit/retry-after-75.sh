#!/bin/sh
# sh jobs/submit/retry-after-75.sh COMMAND ...
# Runs the command, and again after exit code 75: at most three times, a minute apart. Any other code is final, because
# running again does not help. SIGTERM is passed on, so that the command can end cleanly.
stopped=
trap 'stopped=yes; kill -TERM "$running" 2>/dev/null' TERM

wait_for() {
    wait "$running"
    code=$?
    if [ -n "$stopped" ]; then
        wait "$running" # the signal interrupted the first wait
        code=$?
    fi
}

left=3
while :; do
    "$@" &
    running=$!
    wait_for
    if [ "$code" -ne 75 ] || [ "$left" -eq 0 ] || [ -n "$stopped" ]; then
        exit "$code"
    fi
    left=$((left - 1))
    sleep "${EXCIR_PAUSE:-60}" &
    running=$!
    wait_for
    if [ -n "$stopped" ]; then
        exit 143
    fi
done
