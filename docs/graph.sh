#!/usr/bin/env bash
# graph.sh draws docs/graph.svg, the picture of the graph in docs/graph.md and the
# README: it imports a conversation into a store that is thrown away, works on its
# branches with convls chat, and draws what convls graph shows. The picture is light
# or dark, as whoever looks at it wants it.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/convls" ./cmd/convls
convls() {
	env XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state" "$work/convls" --data-dir "$work/data" "$@"
}

cat >"$work/talk.jsonl" <<'TALK'
{"message_id":"u1","role":"prompter","text":"We move the depot list out of the spreadsheet. Which database should it live in? One person looks after it, and there is no budget for a server."}
{"message_id":"a1","parent_id":"u1","role":"assistant","text":"SQLite. It is one file, needs no server, and a person can copy it to look at it. The depot list has 40 tables at most and a few writers, which is well within what it does."}
{"message_id":"a2","parent_id":"u1","role":"assistant","text":"Postgres, if a server is at hand already. It checks types strictly and many can write at once, but somebody has to update it and to watch its disk."}
{"message_id":"u2","parent_id":"a1","role":"prompter","text":"Take SQLite then. You must not touch config/prod.yaml while you set it up. How do we keep backups?"}
{"message_id":"a3","parent_id":"u2","role":"assistant","text":"With the backup command of its shell, once an hour, into a folder of its own. It copies a database that is in use without stopping it. Keep the last 48 copies and one a day before that."}
{"message_id":"u3","parent_id":"a2","role":"prompter","text":"What would a server cost us in a year, with somebody who looks after it for two hours a month?"}
{"message_id":"a4","parent_id":"u3","role":"assistant","text":"About 400 for the machine and 24 hours of work. For one list that is a lot."}
{"message_id":"u4","parent_id":"a3","role":"prompter","text":"Write the script for that, in plain shell, and tell me how to try a restore."}
{"message_id":"a5","parent_id":"u4","role":"assistant","text":"sqlite3 depots.db \".backup backups/$(date +%F-%H).db\" in a cron job. To try a restore, open the newest copy, run PRAGMA integrity_check, and compare the count of depots."}
{"message_id":"u5","parent_id":"a3","role":"prompter","text":"Could the copies go to another machine as well?"}
{"message_id":"a6","parent_id":"u5","role":"assistant","text":"Yes: rsync the folder after each copy. Litestream does it all the time, if an hour is too long."}
{"message_id":"u6","parent_id":"a5","role":"prompter","text":"The restore works. What about two people who edit the same depot?"}
{"message_id":"a7","parent_id":"u6","role":"assistant","text":"Give each row a version, and have an update name the version that it read. Whoever comes second is told, and nobody's work is lost."}
TALK
convls import "$work/talk.jsonl"
convls chat --continue --plain <<'COMMANDS'
/rename Where do the depots live?
/name depots
/checkout 3
/name server
/checkout depots
/compact #6
/pin #8
/edit #8 Lock the row while somebody edits it. It is simple, but a lock that is forgotten keeps the others out.
/name locks
/checkout depots
/attach branch server
COMMANDS
convls graph last --all --width 860 --output docs/graph.svg --force
convls graph last --all --width 96
