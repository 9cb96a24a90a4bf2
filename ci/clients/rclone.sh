# rclone. The provider Other lists without encoding-type=url, so names with control characters need the option.
. ../common.sh
export RCLONE_CONFIG= RCLONE_CONFIG_NODE_TYPE=s3 RCLONE_CONFIG_NODE_PROVIDER=Other RCLONE_CONFIG_NODE_ENV_AUTH=true RCLONE_CONFIG_NODE_ENDPOINT=$AWS_ENDPOINT_URL
export RCLONE_CONFIG_NODE_REGION=$AWS_REGION RCLONE_CONFIG_NODE_LIST_URL_ENCODE=true RCLONE_RETRIES=1 RCLONE_LOW_LEVEL_RETRIES=2
rclone mkdir node:names
rclone test info --all node:names >info
grep -A1 'stringNeedsEscaping' info | grep -F "'/', '\\x00'"
grep 'maxFileLength = 1024 // for 1 byte' info
grep 'canWriteUnnormalized = true' info
grep 'canReadUnnormalized   = true' info
grep 'canReadRenormalized   = false' info
grep 'canStream = true' info
rclone purge node:names
equal '' "$(rclone lsf node:)"
shown "test info: keys take all characters except / and NUL, purge"

rclone mkdir node:photos
rclone copy ../tree node:photos/tree
rclone check --download ../tree node:photos/tree
rclone copyto --s3-upload-cutoff 5M --s3-chunk-size 5M ../large node:photos/large
rclone cat node:photos/large | cmp - ../large
rclone cat --offset 10 --count 5 node:photos/large | cmp - <(tail -c +11 ../large | head -c 5)
shown "copy, check --download, upload in parts"

rclone sync node:photos/tree node:photos/copy
rclone check node:photos/tree node:photos/copy
rclone move node:photos/copy node:photos/moved
rclone check ../tree node:photos/moved
equal "large moved/ tree/" "$(rclone lsf node:photos | paste -sd' ')"
rclone copyto --s3-copy-cutoff 5M node:photos/large node:photos/joined
rclone cat node:photos/joined | cmp - ../large
mkdir less && cp -r ../tree less/ && find less -type f -name '*a*' -delete
rclone sync less/tree node:photos/moved
rclone check less/tree node:photos/moved
shown "sync, copy and move within the node, copy in parts"

rclone cleanup node:photos
rclone backend cleanup node:photos -o max-age=1s
equal '{"photos":[]}' "$(rclone backend list-multipart-uploads node:photos | tr -d ' \n\t')"
curl -fs "$(rclone link --expire 1h node:photos/large)" | cmp - ../large
rclone purge node:photos
shown "cleanup, link"
stop_node
