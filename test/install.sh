#!/usr/bin/env bash
# install.sh installs what the tests need beside Go: a C compiler for the race
# detector, linters for shell scripts and Lua, the model server of test/llama, and
# the two Neovims of test/neovim. It does nothing where all is there.
set -euo pipefail
cd "$(dirname "$0")"

packages=()
command -v gcc >/dev/null || packages+=(gcc libc6-dev)
command -v shellcheck >/dev/null || packages+=(shellcheck)
command -v git >/dev/null || packages+=(git)
command -v luacheck >/dev/null || packages+=(lua-check)
command -v npm >/dev/null || packages+=(npm)
if [ ${#packages[@]} -gt 0 ]; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "install.sh: please install ${packages[*]}, or run this as root" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/convls-test
./llama/get.sh "$cache/llama"
./neovim/get.sh trixie "$cache/neovim-0.10"
./neovim/get.sh forky "$cache/neovim-0.12"

# The formatter for Lua comes as an npm package; its version is pinned here.
stylua=2.5.2
if ! "$cache/stylua/node_modules/.bin/stylua" --version 2>/dev/null | grep -qx "stylua $stylua"; then
	npm install --silent --no-fund --no-audit --prefix "$cache/stylua" "@johnnymorganz/stylua-bin@$stylua" >/dev/null
fi
