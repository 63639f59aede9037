#!/usr/bin/env bash
# Runs the programs' tests on the programs of another Debian release, in a root folder of that release,
# and writes the table docs/compatibility_debian13.md is made of. As root. Needs mmdebstrap and its mirror.
#   packaging/chroot_programs.sh RELEASE BUILD OUTPUT [TEST...]
#   packaging/chroot_programs.sh trixie build/test build/trixie.md dapl iser
# BUILD may be of this machine's release: libraries that the other one lacks are copied from here.
# ROOT=FOLDER keeps the root folder, or uses the one that is there.
set -euo pipefail
(( $# >= 3 )) || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
release=$1 build=$(cd "$2" && pwd) output=$(realpath "$3")
mirror=${MIRROR:-http://deb.debian.org/debian}
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin

# The programs, and what the tests drive them with. A release may lack some of them.
packages=(ca-certificates python3 python3-yaml python3-numpy iproute2 procps man-db g++ pkg-config
  ibverbs-utils ibverbs-providers rdmacm-utils perftest python3-pyverbs ucx-utils libucx-dev openmpi-bin
  libopenmpi-dev mpich libmpich-dev libfabric-bin fio qperf iperf3 dapl2-utils libgloo-dev librpma-dev
  infiniband-diags mstflint opensm nbdkit libnbd-bin qemu-system-x86 qemu-utils qemu-block-extra tshark
  ceph-mon ceph-osd ceph-common uuid-runtime tgt libiscsi-bin redis-server redis-tools memcached
  libmemcached-tools nginx-light postgresql nfs-ganesha dpdk dpdk-dev ibacm srptools opa-basic-tools
  pcp-pmda-infiniband)

if [[ -n ${ROOT:-} ]]; then
  root=$ROOT
else
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
fi

# in_root COMMAND...: pivot_root(2), since a process in a chroot may not make user namespaces.
in_root() {
  unshare --mount --pid --fork --kill-child bash -ec '
    root=$1
    mount --rbind "$root" "$root"
    mount -t proc none "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"
    mount -t tmpfs none "$root/tmp"
    for folder in "${@:2:3}"; do
      mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"
    done
    mkdir -p "$root/before"; cd "$root"; pivot_root . before; umount -l /before
    exec "${@:5}"' bash "$root" "$here" "$build" "$(dirname "$output")" "$@"
}

if [[ ! -e $root/etc/os-release ]]; then
  mmdebstrap --quiet --variant=minbase "$release" "$root" "$mirror"
  chmod 755 "$root"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"  # no service starts
  chmod 755 "$root/usr/sbin/policy-rc.d"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  in_root bash -ec '
    apt-get -qq update
    for package; do ! apt-cache show "$package" >/dev/null 2>&1 || there+=("$package"); done
    apt-get -qq install -y --no-install-recommends "${there[@]}" >/dev/null' bash "${packages[@]}"
fi

# Prints the libraries that the build's files are linked to and that the root lacks.
missing() {
  in_root bash -c 'ldconfig; ldd "$1"/bin/verbena "$1"/lib/* /usr/local/lib/* 2>/dev/null || true' \
    bash "$build" | awk '/not found/ {print $1}' | sort -u
}
while libraries=$(missing) && [[ -n $libraries ]]; do
  for library in $libraries; do
    cp -L "$(ldconfig -p | awk -v name="$library" '$1 == name {print $NF; exit}')" "$root/usr/local/lib/"
  done
done

in_root python3 "$here/tests/programs/compatibility.py" "$build" -o "$output" "${@:4}"
