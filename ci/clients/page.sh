# The script of docs/how-to/use-s3-clients.md as it stands, but on free ports.
set -euo pipefail
trap 'kill -9 "${node:-}" 2>/dev/null || true' EXIT
awk '/^```sh$/ {on = 1; next} /^```$/ {on = 0} on' ../use-s3-clients.md >script
[ "$(wc -l <script)" -gt 40 ]
free=($(python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(s.getsockname()[1] for s in held))'))
for i in 0 1 2; do sed -i "s/:848$i\b/:${free[i]}/g" script; done
cp -r ../tree photos
set -x
. ./script
set +x
echo "shown: the commands of the page"
