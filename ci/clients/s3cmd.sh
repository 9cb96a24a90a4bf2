# s3cmd.
. ../common.sh
host=${AWS_ENDPOINT_URL#http://}
printf '[default]\naccess_key = %s\nsecret_key = %s\nbucket_location = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = False\n' \
	"$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" "$AWS_REGION" "$host" "$host" >s3cfg
s3cmd() { command s3cmd --config=s3cfg --no-progress "$@"; }
printf x >one

s3cmd mb s3://photos
s3cmd put --add-header=x-amz-meta-color:red one s3://photos/one
s3cmd get s3://photos/one got
cmp got one
s3cmd ls s3://photos | grep ' 1  *s3://photos/one$'
s3cmd info s3://photos | grep 'ACL: *1: FULL_CONTROL'
s3cmd info s3://photos/one | grep 'x-amz-meta-color: red'
s3cmd modify --add-header=x-amz-meta-shape:round s3://photos/one
s3cmd info s3://photos/one | grep 'x-amz-meta-shape: round'
s3cmd cp s3://photos/one s3://photos/two
s3cmd mv s3://photos/two s3://photos/three
rejected 404 s3cmd info s3://photos/two
s3cmd del s3://photos/three
shown "put, get, ls, info, modify, cp, mv, del"

s3cmd put --multipart-chunk-size-mb=5 ../large s3://photos/large
s3cmd get s3://photos/large large
cmp large ../large
s3cmd cp s3://photos/large s3://photos/copy
s3cmd get s3://photos/copy copy
cmp copy ../large
s3cmd multipart s3://photos
s3cmd sync ../tree/ s3://photos/tree/ >/dev/null
s3cmd sync s3://photos/tree/ tree/ >/dev/null
diff -r ../tree tree
equal "" "$(s3cmd sync ../tree/ s3://photos/tree/)"
shown "uploads in parts, sync"

rejected NotImplemented s3cmd setacl --acl-public s3://photos/one
curl -s "$(s3cmd signurl s3://photos/one +600)" | grep '<Code>InvalidRequest</Code>' # signature version 2
s3cmd del --recursive --force s3://photos >/dev/null
s3cmd rb s3://photos
shown "signurl makes URLs of signature version 2, which are rejected"
stop_node
