#!/usr/bin/env bash
# Builds the packages of the last commit twice, in folders of different names, under different
# umasks, locales and time zones, and compares the bytes. Exit status 1: they differ.
#   packaging/reproducible.sh [FOLDER]     (default: build/reproducible)
# JOBS=N sets how many compile at once.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
folder=$(mkdir -p "${1:-build/reproducible}" && cd "${1:-build/reproducible}" && pwd)

build() {  # NAME UMASK LOCALE TIME-ZONE
  rm -rf "${folder:?}/$1"
  mkdir -p "$folder/$1/verbena"
  git archive HEAD | tar -x -C "$folder/$1/verbena"
  echo "building in $folder/$1"
  (umask "$2" && cd "$folder/$1/verbena" &&
    env LC_ALL="$3" TZ="$4" CCACHE_DISABLE=1 DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)}" \
      dpkg-buildpackage -us -uc -b >"$folder/$1/build.log" 2>&1) ||
    { tail -n 20 "$folder/$1/build.log"; exit 2; }
}

hashes() { (cd "$folder/$1" && sha256sum -- *.deb); }

build one 0022 C UTC
build another-name 0002 C.UTF-8 Asia/Tokyo
hashes one
if diff <(hashes one) <(hashes another-name); then
  echo "the packages of both builds have the same bytes"
else
  echo "the packages differ; diffoscope shows how" >&2
  exit 1
fi
