# The AWS CLI.
. ../common.sh
aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }
api() { local call=$1; shift; aws s3api "$call" --bucket photos "$@"; }
: >empty
printf x >one
aws s3 mb s3://photos
rejected BucketAlreadyOwnedByYou aws s3 mb s3://photos

for file in empty one ../large; do
	aws s3 cp --quiet "$file" "s3://photos/sizes/${file##*/}"
	aws s3 cp --quiet "s3://photos/sizes/${file##*/}" - | cmp - "$file"
done
equal 4 "$(api head-object --key sizes/large --part-number 1 --query PartsCount)"
shown "cp of 0 bytes, 1 byte and 30 MB in parts"

aws s3 cp --quiet s3://photos/sizes/large s3://photos/copy # in parts, with a look at the tags of the source
aws s3 cp --quiet s3://photos/copy - | cmp - ../large
shown "copy in parts"

aws s3 sync --quiet ../tree s3://photos/tree
equal '' "$(aws s3 sync ../tree s3://photos/tree)"
aws s3 sync --quiet s3://photos/tree tree
diff -r ../tree tree
equal 100 "$(aws s3 ls --recursive --page-size 7 s3://photos/tree/ | wc -l)"
equal "empty large one" "$(aws s3 ls s3://photos/sizes/ | awk '{print $4}' | paste -sd' ')"
shown "sync, ls with prefix and pages"

curl -fs "$(aws s3 presign s3://photos/sizes/large)" | cmp - ../large
rejected 403 curl -fsS "$(aws s3 presign --expires-in 60 s3://photos/sizes/large | sed 's/large/small/')"
api get-object --key sizes/large --range bytes=5-9 part >/dev/null
cmp part <(tail -c +6 ../large | head -c 5)
rejected InvalidRange api get-object --key sizes/large --range bytes=30000000- part
shown "presigned URL, range"

api put-object --key meta --body one --metadata Color=red --content-type text/plain --checksum-algorithm SHA256
equal "red text/plain LXEWQrcmsEQBYnyp+6wy9chTD7GQPMTbAiWHF5IaSIE=" \
	"$(api head-object --key meta --checksum-mode ENABLED --query '[Metadata.color,ContentType,ChecksumSHA256]' --output text | tr '\t' ' ')"
api copy-object --key moved --copy-source photos/meta --metadata-directive REPLACE --metadata shape=round
equal "round None" "$(api head-object --key moved --query '[Metadata.shape,Metadata.color]' --output text | tr '\t' ' ')"
equal "moved none" "$(api delete-objects --delete 'Objects=[{Key=moved},{Key=none}]' --query 'Deleted[].Key' --output text | tr '\t' ' ')"
rejected 404 api head-object --key moved
shown "metadata, checksum, copy-object, delete-objects"

id=$(api create-multipart-upload --key up --query UploadId --output text)
api upload-part --key up --upload-id "$id" --part-number 1 --body one
equal "$id" "$(api list-multipart-uploads --query 'Uploads[].UploadId' --output text)"
rejected BucketNotEmpty aws s3 rb s3://photos
api abort-multipart-upload --key up --upload-id "$id"
equal null "$(api list-multipart-uploads --query Uploads)"
rejected NoSuchUpload api list-parts --key up --upload-id "$id"
shown "list-multipart-uploads, abort"

aws s3 rb --force s3://photos >/dev/null
rejected NoSuchBucket aws s3 ls s3://photos
shown "rb --force"
stop_node
