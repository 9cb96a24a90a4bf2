# restic, and a kill of the node in the middle of a backup.
. ../common.sh
export RESTIC_REPOSITORY=s3:$AWS_ENDPOINT_URL/backups/laptop RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=$PWD/cache
objects() { find data/objects -type f | wc -l; }
# restored FILES: the latest snapshot has the files of a directory.
restored() {
	rm -rf back
	restic restore --quiet --target back latest
	diff -r "$1" "back/$1"
}

restic init
mkdir files
cp -r ../tree files/
restic backup --quiet files
cp ../large files/
restic backup --quiet files
restic check --read-data
restored files
restic diff $(restic snapshots --json | grep -o '"short_id":"[^"]*"' | cut -d'"' -f4) | grep '^+ .*/files/large'
restic forget --keep-last 1 --prune
restored files
shown "init, backup, check --read-data, diff, forget --prune, restore"

# The node is killed after it has stored a part of a backup. The upload is slow enough for that; if the backup
# has ended before, the next one is tried.
for seed in 2 3 4 5; do
	python3 -c "import random, sys; sys.stdout.buffer.write(random.Random($seed).randbytes(80_000_000))" >files/more
	before=$(objects)
	restic --limit-upload 16384 backup --quiet files & backup=$!
	until [ "$(objects)" -gt $((before + 1)) ] || ! kill -0 "$backup"; do sleep 0.05; done
	kill -9 "$node"
	wait "$node" || true
	! kill -0 "$backup" || break
	wait "$backup"
	start_node
done
kill -0 "$backup"
start_node
retried="restic repeated the requests"
wait "$backup" || { retried="a second backup was needed"; restic unlock; restic backup --quiet files; }
restic check --read-data
restored files
shown "the node killed during a backup: $retried, check --read-data, restore"
stop_node
