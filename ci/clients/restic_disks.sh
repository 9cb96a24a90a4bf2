# restic, while the node is killed every few seconds and one of the two disks of the objects loses all files.
mkdir disk1 disk2
cat >node.yaml <<END
storage:
  providers:
    - { name: disk1, path: $PWD/disk1 }
    - { name: disk2, path: $PWD/disk2 }
  repair: { interval: 1s, rate: 1GiB }
END
export MACRONODE_CONFIG=$PWD/node.yaml
. ../common.sh
trap 'kill -9 ${work:-} ${node:-} 2>/dev/null || true' EXIT
export RESTIC_REPOSITORY=s3:$AWS_ENDPOINT_URL/backups/laptop RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=$PWD/cache

# until_done COMMAND…: repeats a command of restic at most twice. A command that has failed can leave a lock.
until_done() {
	local attempt
	for attempt in 1 2 3; do
		! timeout 30 restic "$@" || return 0
		echo "$*" >>repeated
		restic unlock --remove-all
	done
	return 1
}

# back_up_and_restore: adds a file, backs up, restores and compares, again and again until the file ended is there.
back_up_and_restore() {
	local round=0
	until [ -e ended ]; do
		round=$((round + 1))
		python3 -c "import random; open('files/$round', 'wb').write(random.Random($round).randbytes(12_000_000))"
		until_done --limit-upload 8192 backup --quiet files
		rm -rf back
		until_done restore --quiet --target back latest
		diff -r files back/files
		echo "$round" >rounds
	done
}

restic init
mkdir files
cp -r ../tree files/
back_up_and_restore & work=$!
for kill in 1 2 3 4 5 6; do
	sleep 2
	if [ "$kill" = 3 ]; then
		find disk2 -type f ! -name provider.id -print -quit | grep .
		until rm -rf disk2/*; do :; done # the node writes meanwhile
		sleep 1
	fi
	kill -0 "$work"
	kill -9 "$node"
	wait "$node" || true
	start_node
done
touch ended
wait "$work"
unset work
restic unlock --remove-all
restic check --read-data
rm -rf back
restic restore --quiet --target back latest
diff -r files back/files
macronode storage repair >repaired
grep -q '^2 copies of each object' repaired
grep -q 'all objects had their copies' repaired
macronode storage status --json | grep -q '"missing_copies":0'
stop_node >verified
for disk in disk1 disk2; do grep -E "provider $disk: [1-9][0-9]* copies intact, 0 missing, 0 damaged" verified; done
shown "$kill kills and a lost disk during $(cat rounds) backups and restores, $(cat repeated 2>/dev/null | wc -l) commands repeated; check --read-data, restore, storage repair, verify"
