#!/usr/bin/env bash
# neovim.sh draws the pictures of docs/neovim.md: it imports a conversation into a store
# that is thrown away, has a Neovim with the plugin play docs/neovim/scene.lua in a
# terminal, and turns what that shows into PNGs, in light and in dark. Needs tmux.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD

neovim="${XDG_CACHE_HOME:-$HOME/.cache}/convls-test/neovim-0.12"
./test/neovim/get.sh forky "$neovim"

work=$(mktemp -d)
server=
trap 'tmux -L convls-neovim kill-server 2>/dev/null || true; if [ -n "$server" ]; then kill "$server"; wait "$server" || true; fi; rm -rf "$work"' EXIT
go build -o "$work/convls" ./cmd/convls
go build -o "$work/draw" docs/neovim/draw.go
./test/debian.sh forky fonts-dejavu-core "$work/font"

# Nothing of who makes the pictures is read or changed.
export XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state XDG_DATA_HOME=$work/share XDG_CACHE_HOME=$work/cache
export SCENE_PLUGIN=$here/editors/neovim SCENE_PROGRAM=$work/convls SCENE_STORE=$work/data

"$work/convls" --data-dir "$work/data" import docs/neovim/talk.jsonl
"$work/convls" --data-dir "$work/data" chat --continue --plain <<'COMMANDS'
/checkout 5
/name server
/checkout 4
/name locks
/checkout 4
/name depots
COMMANDS

pane() { tmux -L convls-neovim "$@"; }
# ask has Neovim evaluate an expression.
ask() { "$neovim/bin/nvim" --server "$work/socket" --remote-expr "$1"; }

# await waits until a command prints a text.
await() {
	local text=$1
	shift
	for _ in $(seq 100); do
		if [ "$("$@" 2>/dev/null)" = "$text" ]; then return; fi
		sleep 0.1
	done
	echo "$* never printed $text" >&2
	exit 1
}

# picture NAME LINES has the scene show something on so many lines, and draws it twice.
picture() {
	local problem page
	pane resize-window -x 130 -y "$2"
	await "$2" ask '&lines'
	problem=$(ask "v:lua.Show('$1')")
	if [ -n "$problem" ]; then
		echo "$1: $problem" >&2
		pane capture-pane -p >&2
		exit 1
	fi
	for colours in light dark; do
		page=$(ask "v:lua.Colours('$colours', '$1-$colours')")
		await "$1-$colours" pane display-message -p '#{pane_title}'
		pane capture-pane -e -p -N >"$work/screen.ansi"
		"$work/draw" "$work/font/usr/share/fonts/truetype/dejavu" "$page" "$work/screen.ansi" "docs/neovim/$1-$colours.png"
	done
}

mkdir "$work/depots"
cat >"$work/depots/backup.sh" <<'SCRIPT'
#!/bin/sh
# backup.sh copies the depots, once an hour.
set -eu

db=depots.db
to=backups
now=$(date +%F-%H)

mkdir -p "$to"
sqlite3 "$db" ".backup $to/$now.db"
sqlite3 "$to/$now.db" 'PRAGMA integrity_check'

# The last 48, and one a day of those before.
ls "$to" | sort -r | tail -n +49 |
	grep -v -- '-00\.db$' |
	(cd "$to" && xargs -r rm --)

# A restore is a copy, too.
if [ "${1-}" = restore ]; then
	sqlite3 "$to/$2.db" ".backup $db"
	sqlite3 "$db" 'PRAGMA integrity_check'
fi
SCRIPT
# The program of get.sh is run by a loader, and so can not start itself as a Neovim with a
# terminal does: one without runs the scene, and another one shows it.
(cd "$work/depots" && exec "$neovim/bin/nvim" --clean -u "$here/docs/neovim/scene.lua" --headless --listen "$work/socket" backup.sh) &
server=$!
await 1 ask 1
pane -f /dev/null new-session -d -x 130 -y 34 env COLORTERM=truecolor TERM=xterm-256color \
	"$neovim/bin/nvim" --server "$work/socket" --remote-ui
picture chat 32
picture context 25
picture summary 25
picture graph 13
picture ghosts 20
"$neovim/bin/nvim" --server "$work/socket" --remote-send '<C-\><C-N>:qa!<CR>'
wait "$server"
server=
