#!/bin/sh
# Delegates one task to a coding agent and shows the whole trail, offline: a private tmux
# server, an agent in it, the Bridge from bin/, and the example Host.
#
#   internal/testkit/demo.sh [standin | standin-claude | codex | codex-daemon | codex-remote | claude]
#
# codex and claude are the real programs at pinned versions (installed by npm the first
# time) against a scripted model server; the stand-ins need neither.
set -eu
agent=${1:-standin}
task=${TASK:-'SLEEP:1 ;; SAY:Knock, knock. The task is done.'}
cd "$(dirname "$0")/../.."
work=$(mktemp -d /tmp/akk-demo-XXXXXX)
up=
cleanup() {
	[ -z "$up" ] || kill "$up" 2>/dev/null && wait "$up" 2>/dev/null || true
	tmux -S "$work/tmux" kill-server 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

go build -o "$work/host" ./examples/host
case $agent in
standin | standin-codex) kind=codex ;;
standin-claude) kind=claude ;;
codex | codex-embedded) kind=codex mode=embedded ;;
codex-daemon) kind=codex mode=daemon ;;
codex-remote) kind=codex mode=remote ;;
claude) kind=claude mode=claude ;;
*)
	echo "demo: AGENT=$agent: want standin, standin-claude, codex, codex-daemon, codex-remote or claude" >&2
	exit 2
	;;
esac
if [ -z "${mode:-}" ]; then
	mkdir "$work/home" "$work/proj"
	go build -o "$work/$kind" ./internal/testkit/standin/cmd/standin
	tmux -u -S "$work/tmux" -f /dev/null new-session -d -s "$kind" -x 120 -y 40 -c "$work/proj" \
		"exec env -u CODEX_HOME -u CLAUDE_CONFIG_DIR HOME='$work/home' STANDIN_EVENTS='$work/events' '$work/$kind'"
	tries=0
	until grep -qs '"ready"' "$work/events"; do
		[ $((tries += 1)) -le 300 ] || { echo "demo: the stand-in did not come up" >&2; exit 1; }
		sleep 0.1
	done
else
	echo "Starting the real $kind; it takes some seconds."
	mkdir "$work/agent"
	go build -o "$work/agentup" ./internal/testkit/realagent/cmd/agentup
	"$work/agentup" --agent "$mode" --socket "$work/tmux" --dir "$work/agent" >"$work/up.log" &
	up=$!
	until grep -qs '^ready' "$work/up.log"; do
		kill -0 "$up" 2>/dev/null || { echo "demo: the agent did not come up" >&2; exit 1; }
		sleep 0.2
	done
	cat "$work/up.log"
fi
"$work/host" --bridge "${BRIDGE:-$PWD/bin/agent-knock-knock}" --agent "$kind" --timeout "${TIMEOUT:-2m}" --task "$task" \
	-- --store-dir "$work/store" --tmux-socket "$work/tmux"
echo
echo "What the person at the terminal sees:"
tmux -S "$work/tmux" capture-pane -p -t "$kind" | sed -e '/^ *$/d' -e 's/^/  | /'
