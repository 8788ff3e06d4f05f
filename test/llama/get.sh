#!/usr/bin/env bash
# get.sh DEST puts a runnable llama-server into the folder DEST/bin.
#
# The program is Debian's own build from a newer suite than the one that may be
# installed here, so it comes with its C library and runs from its folder: no
# package is installed, and nothing outside DEST is touched. It is fetched from
# the mirror that apt is set up to use, signatures checked, and only if DEST does
# not hold a working one yet.
set -euo pipefail

if [ $# -ne 1 ]; then
	echo "usage: $0 DEST" >&2
	exit 2
fi
dest=$(realpath -m "$1")

if "$dest/bin/llama-server" --version >/dev/null 2>&1; then
	exit 0
fi

mkdir -p "$(dirname "$dest")"
root=$(mktemp -d "$dest.XXXXXX")
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
mkdir "$root/bin"
"$(dirname "$0")/../debian.sh" forky llama.cpp-tools "$root"

# The program can not use the machine's older C library: its own loader runs it.
# Of the processor back ends, one that this machine has the instructions for.
cat >"$root/bin/llama-server" <<'SCRIPT'
#!/bin/sh
here=$(dirname "$(dirname "$(realpath "$0")")")
for loader in "$here"/usr/lib*/ld-linux-*.so.* "$here"/usr/lib/*/ld-linux-*.so.*; do
	[ -x "$loader" ] && break
done
lib=$(dirname "$(find "$here/usr/lib" -name 'libc.so.6' | head -n 1)")
if [ -z "${GGML_BACKEND_PATH:-}" ]; then
	kind=x64
	grep -qw avx2 /proc/cpuinfo && kind=haswell
	backend=$(find "$lib" -name "libggml-cpu-$kind.so" | head -n 1)
	[ -n "$backend" ] || backend=$(find "$lib" -name 'libggml-cpu*.so' | sort | head -n 1)
	export GGML_BACKEND_PATH="$backend"
fi
exec "$loader" --library-path "$lib:$lib/llama" "$here/usr/bin/llama-server" "$@"
SCRIPT
chmod +x "$root/bin/llama-server"
"$root/bin/llama-server" --version >/dev/null 2>&1 || {
	echo "get.sh: the llama-server that was fetched does not run here:" >&2
	"$root/bin/llama-server" --version >&2
	exit 1
}
rm -rf "$dest"
mv "$root" "$dest"
