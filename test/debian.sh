#!/usr/bin/env bash
# debian.sh SUITE PACKAGE ROOT unpacks a package of a Debian suite, which may be
# newer than the one that is installed here, into the folder ROOT, with all that it
# depends on, its C library too. No package is installed, and nothing outside ROOT is
# touched. It is fetched from the mirror that apt is set up to use, signatures checked.
set -euo pipefail

if [ $# -ne 3 ]; then
	echo "usage: $0 SUITE PACKAGE ROOT" >&2
	exit 2
fi
suite=$1
package=$2
root=$3

# The first address that apt fetches Debian itself from, up to its dists folder.
address=$(apt-get update --print-uris | awk -F"'" 'match($2, /\/debian\/dists\//) && !found {print substr($2, 1, RSTART + 7); found = 1}')
if [ -z "$address" ]; then
	echo "debian.sh: apt has no Debian mirror configured" >&2
	exit 1
fi

apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$root"
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $address $suite main" >"$apt/sources.list"
options=(
	-qq
	-o "Dir::Etc::sourcelist=$apt/sources.list"
	-o Dir::Etc::sourceparts=/dev/null
	-o "Dir::State::lists=$apt/lists"
	-o "Dir::State::status=$apt/status"
	-o "Dir::Cache=$apt/cache"
	-o Acquire::Languages=none
	-o Acquire::Retries=3
	-o APT::Sandbox::User=root
	-o Debug::NoLocking=1
)
apt-get "${options[@]}" update
apt-get "${options[@]}" install -y --no-install-recommends --download-only "$package"
for deb in "$apt"/cache/archives/*.deb; do
	dpkg-deb -x "$deb" "$root"
done
