#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that are missing, and says which and why; silent when all are there.
#
#   tools/install_dependencies.sh [build] [demo] [test] [python] [tidy]     default: build
set -eu

packages() {
  case $1 in
    build) cat <<'END' ;;
g++                   the compiler
cmake                 configures the build
ninja-build           runs the build
ccache                makes the second build quick
python3               runs the gates and some tests
clang-format-14       checks the layout of the sources
libhwy-dev            one source for every instruction set
libfmt-dev            formats messages
libcli11-dev          reads the command line
nlohmann-json3-dev    reads and writes JSON
libtomlplusplus-dev   reads configurations
libutf8proc-dev       knows the width and kind of characters
libxxhash-dev         checksums of models
zlib1g-dev            reads .npz files and .gz texts
libzstd-dev           reads .zst texts
libsentencepiece-dev  learns subwords
libgtest-dev          tests
libgmock-dev          tests
pkgconf               a test asks it about fovea.pc
END
    demo) cat <<'END' ;;
bible-kjv             decodes the English text of the demo
bible-kjv-text        the English text of the demo
fortunes-zh           the Chinese verse of the demo
END
    test) cat <<'END' ;;
fortunes-zh           the Chinese verse that a test tells from prose
manpages-zh           the prose
chromium              opens the HTML pages
zsh                   completes commands and options, as users do
fish                  the same
mandoc                checks the manual pages
groff-base            the same
END
    python) cat <<'END' ;;
python3-venv          environments for the Python package and its tests
python3-dev           headers of Python for its extension
END
    tidy) cat <<'END' ;;
clang-14              the second compiler, and libFuzzer
libclang-rt-14-dev    libFuzzer and the sanitizers of clang
clang-tidy-14         looks for mistakes
END
    *) echo "usage: tools/install_dependencies.sh [build] [demo] [test] [python] [tidy]" >&2; exit 2 ;;
  esac
}

wanted=$(for group in "${@:-build}"; do packages "$group"; done)
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  command -v cmake >/dev/null && exit 0  # another system, where someone has seen to it
  echo "This is no Debian system: please install the equivalents of" >&2
  echo "$wanted" >&2
  exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii *//p')
missing=$(echo "$wanted" | while read -r package why; do
  echo "$installed" | grep -qx "$package" || printf '%-22s%s\n' "$package" "$why"
done)
[ -z "$missing" ] && exit 0

echo "These Debian packages are missing and will be installed:"
echo "$missing" | sed 's/^/  /'
as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: only root can install them, and there is no sudo. As root:" >&2
    echo "  apt-get install $(echo "$missing" | awk '{printf "%s ", $1}')" >&2
    exit 1
  fi
  as_root=sudo
fi
names=$(echo "$missing" | awk '{print $1}')
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of names
$as_root apt-get install -y -q --no-install-recommends $names >/dev/null 2>&1 || {
  $as_root apt-get update -q >/dev/null
  $as_root apt-get install -y -q --no-install-recommends $names
}
