#!/usr/bin/env bash
# chat.sh draws docs/chat.svg, the picture of the terminal client in the README: it
# plays a conversation in a terminal of 96 by 30 and turns what that shows into an
# SVG. Needs tmux.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'tmux -L convls-picture kill-server 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/convls" ./cmd/convls

pane() { tmux -L convls-picture "$@"; }
# shows waits until the screen shows a text.
shows() {
	for _ in $(seq 100); do
		if pane capture-pane -p | grep -qF -- "$1"; then return; fi
		sleep 0.1
	done
	echo "the screen never showed: $1" >&2
	pane capture-pane -p >&2
	exit 1
}
say() {
	pane send-keys -l -- "$1"
	pane send-keys Enter
	shows "$2"
}

pane -f /dev/null new-session -d -x 96 -y 30 env COLORTERM=truecolor TERM=xterm-256color XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config" \
	"$work/convls" --data-dir "$work/data" chat
shows "offline"
say "repeat: **Blue-green** keeps two copies of the service and moves all traffic at once; a **canary** moves one percent first." "one percent first"
say "repeat: Then take the canary: a bad build reaches one percent of the people." "reaches one percent"
say "/fork rollback" "rollback"
say "repeat: To go back, send all traffic to the old copy:" "old copy:"
say "/rename Blue-green or canary?" "Blue-green or canary?"
pane capture-pane -e -p >"$work/screen.ansi"
go run github.com/charmbracelet/freeze@v0.2.2 --language ansi --output docs/chat.svg --window --padding 16 --margin 8 "$work/screen.ansi"
