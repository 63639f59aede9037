#!/usr/bin/env bash
# Installs the packages in a clean chroot of a Debian release, runs the README's tour in it
# (debian/tests/tour), purges them, and looks for what is left. As root; the chroot has a network
# namespace of its own. Needs mmdebstrap and its mirror.
#   packaging/chroot_test.sh bookworm|trixie [FOLDER-OF-PACKAGES]     (default: build/packages)
# Packages of another release need that release's libraries: name it in FROM, e.g. FROM=bookworm.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
release=${1:?"usage: chroot_test.sh RELEASE [FOLDER-OF-PACKAGES]"}
packages=$(cd "${2:-build/packages}" && pwd)
mirror=${MIRROR:-http://deb.debian.org/debian}
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf --one-file-system "$root"' EXIT

mmdebstrap --quiet --variant=minbase --include=ca-certificates "$release" "$root" "$mirror"
mkdir "$root/packages"
cp "$packages"/{verbena,libverbena1,libverbena-coll1,libverbena-transfer1,verbena-dev,python3-verbena-transfer}_*.deb \
  "$root/packages/"
cp debian/tests/tour "$root/packages/tour"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[[ -z ${FROM:-} ]] || echo "deb $mirror $FROM main" >"$root/etc/apt/sources.list.d/from.list"

# in_root SCRIPT [UNSHARE-OPTIONS]
in_root() {
  unshare --mount --pid --fork --kill-child "${@:2}" bash -ec '
    mount -t proc none "$0/proc"; mount --rbind /dev "$0/dev"; mount -t tmpfs none "$0/tmp"
    ip link set lo up 2>/dev/null || true
    exec chroot "$0" /bin/sh -ec "$1"' "$root" "$1"
}
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
in_root 'apt-get -qq update
  apt-get -qq install -y --no-install-recommends ibverbs-utils perftest rdmacm-utils >/dev/null
  find / -xdev -not -path "/proc*" -not -path "/tmp*" | sort >/packages/before
  apt-get -qq install -y --no-install-recommends /packages/*.deb >/dev/null'
in_root 'sh /packages/tour' --net
in_root 'verbena default on
  dpkg --purge verbena libverbena1 libverbena-coll1 libverbena-transfer1 verbena-dev python3-verbena-transfer >/dev/null
  ldd /usr/bin/ibv_devinfo | grep libibverbs
  left=$(find / -xdev -iname "*verbena*" -not -path "/proc*" -not -path "/packages*" -not -path "/tmp*")
  [ -z "$left" ] || { echo "left after purge: $left"; exit 1; }'
echo "chroot_test: $release: installed, toured, purged"
