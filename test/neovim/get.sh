#!/usr/bin/env bash
# get.sh SUITE DEST puts a runnable Neovim of the Debian suite SUITE into the
# folder DEST/bin: trixie has 0.10, forky 0.12.
#
# It comes with its C library and its runtime files and runs from its folder: no
# package is installed, and nothing outside DEST is touched. It is fetched from
# the mirror that apt is set up to use, signatures checked, and only if DEST does
# not hold a working one yet.
set -euo pipefail

if [ $# -ne 2 ]; then
	echo "usage: $0 SUITE DEST" >&2
	exit 2
fi
suite=$1
dest=$(realpath -m "$2")

# works says whether the Neovim in a folder starts and finds its runtime.
works() {
	[ "$("$1/bin/nvim" --clean --headless -c 'lua io.write(vim.inspect(1))' -c 'qa!' 2>/dev/null)" = 1 ]
}

if works "$dest"; then
	exit 0
fi

mkdir -p "$(dirname "$dest")"
root=$(mktemp -d "$dest.XXXXXX")
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
mkdir "$root/bin"
"$(dirname "$0")/../debian.sh" "$suite" neovim "$root"

# The parsers lie where a Neovim of the system would look for them.
ln -s ../../../lib/nvim/parser "$root/usr/share/nvim/runtime/parser"

# The program can not use the machine's older C library: its own loader runs it.
# Debian keeps the Lua modules that it links with in a folder of their own.
cat >"$root/bin/nvim" <<'SCRIPT'
#!/bin/sh
here=$(dirname "$(dirname "$(realpath "$0")")")
for loader in "$here"/usr/lib*/ld-linux-*.so.* "$here"/usr/lib/*/ld-linux-*.so.* "$here"/lib*/ld-linux-*.so.*; do
	[ -x "$loader" ] && break
done
lib=$(dirname "$(find "$here/usr/lib" -name 'libc.so.6' | head -n 1)")
export VIMRUNTIME="$here/usr/share/nvim/runtime"
exec "$loader" --library-path "$lib:$lib/lua/5.1" "$(realpath "$here/usr/bin/nvim")" "$@"
SCRIPT
chmod +x "$root/bin/nvim"
works "$root" || {
	echo "get.sh: the Neovim that was fetched does not run here:" >&2
	"$root/bin/nvim" --clean --headless --version >&2
	exit 1
}
rm -rf "$dest"
mv "$root" "$dest"
