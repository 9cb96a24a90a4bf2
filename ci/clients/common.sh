# What the scripts of the clients share. Each sources this file in an empty directory.
set -euo pipefail
trap 'echo "$0, line $LINENO: failed: $BASH_COMMAND"' ERR
trap 'kill -9 "${node:-}" 2>/dev/null || true' EXIT
export MACRONODE_DATA=$PWD/data
ports=(0 0 0)

# start_node: starts the node and waits until it is ready. After the first start, it has the same ports again.
start_node() {
	macronode serve --http "127.0.0.1:${ports[0]}" --admin "127.0.0.1:${ports[1]}" --s3 "127.0.0.1:${ports[2]}" >>node.log 2>&1 & node=$!
	until [ -s data/run.json ] && read_ports && curl -fs "http://127.0.0.1:${ports[1]}/readyz" >/dev/null; do
		kill -0 "$node" || { cat node.log; return 1; }
		sleep 0.1
	done
}

# read_ports: sets ports from the file in which the node reports its addresses; false if it does not have all of them yet.
read_ports() {
	local listener at=0
	for listener in http admin s3; do
		ports[at]=$(sed -n "s/.*\"$listener\":\"127.0.0.1:\([0-9]*\)\".*/\1/p" data/run.json)
		[ -n "${ports[at]}" ] || return 1
		at=$((at + 1))
	done
}

# stop_node: drains the node and verifies what it stored.
stop_node() {
	macronode drain >/dev/null
	wait "$node"
	macronode verify
}

# rejected TEXT COMMAND…: the command fails and reports TEXT.
rejected() {
	local text=$1 output
	shift
	if output=$("$@" 2>&1); then
		echo "not rejected: $*: $output"
		return 1
	fi
	grep -qF -- "$text" <<<"$output" || { echo "rejected without $text: $*: $output"; return 1; }
}

# equal WANT GOT: the texts are equal.
equal() {
	[ "$1" = "$2" ] || { echo "want $1"; echo "got  $2"; return 1; }
}

# shown TEXT: reports what has been checked.
shown() { echo "shown: $*"; }

start_node
eval "$(macronode keys s3)"
