#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes FOLDER an environment of Python with what is named, from PyPI; silent when all is there.
#
#   tools/python_env.sh FOLDER PYTHON requirement...
#
# A requirement that begins with "?" may be missing: then it says so, and goes on.
set -eu
folder=$1
python=$2
shift 2

[ -x "$folder/bin/python" ] || "$python" -m venv "$folder" || {
  echo "error: $python has no module venv: install python3-venv, or say make PYTHON=..." >&2
  exit 1
}

install() {
  PIP_DISABLE_PIP_VERSION_CHECK=1 "$folder/bin/python" -m pip install --quiet "$@" >"$folder/pip.log" 2>&1
}

for requirement in "$@"; do
  name=${requirement#\?}
  grep -qxF "$name" "$folder/installed" 2>/dev/null && continue
  if install "$name"; then
    echo "$name" >>"$folder/installed"
  elif [ "$name" = "$requirement" ]; then
    cat "$folder/pip.log" >&2
    echo "error: pip could not install $name. It comes from PyPI: if that cannot be reached from here," >&2
    echo "set PIP_INDEX_URL to a mirror, or PIP_FIND_LINKS to a folder of wheels." >&2
    exit 1
  else
    echo "note: pip finds no $name here: what needs it is skipped" >&2
  fi
done
