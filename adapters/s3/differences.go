package s3

// A Difference is a part of an answer that differs from that of versitygw to the same request. chaos/s3compare sends
// the requests and fails for every difference that is not listed, and for every line that is not seen.
type Difference struct {
	Request     string // its name in the table of chaos/s3compare; with * at the end, a prefix of it
	Part        string // answer is the status and the error code; else a header or an element, with * at the end a prefix
	Here, There string // * is any text, - is an absent part
	Reason      string
}

// Differences lists what is known.
var Differences = []Difference{
	{"bucket policy", "answer", "501 NotImplemented", "404 NoSuchBucketPolicy", "the node has no policies"},
	{"bucket tags", "answer", "501 NotImplemented", "404 NoSuchTagSet", "the node has no tags"},
	{"bucket CORS", "answer", "501 NotImplemented", "404 NoSuchCORSConfiguration", "the node has no CORS rules"},
	{"object attributes", "answer", "501 NotImplemented", "200", "GetObjectAttributes is not implemented"},
	{"delete if match", "answer", "501 NotImplemented", "412 PreconditionFailed", "conditional deletions are not implemented"},
	{"*", "X-Amz-Checksum-Crc64nvme", "-", "*", "the node stores a checksum only if the client sends one"},
	{"*", "X-Amz-Checksum-Type", "-", "FULL_OBJECT", "the node stores a checksum only if the client sends one"},
	{"c*", "CopyObjectResult/Checksum*", "-", "*", "the node stores a checksum only if the client sends one"},
	{"complete", "CompleteMultipartUploadResult/Checksum*", "-", "*", "the node stores a checksum only if the client sends one"},
	{"list v*", "ListBucketResult/Contents/Checksum*", "-", "*", "lists do not show checksums"},
	{"list parts*", "ListPartsResult/Checksum*", "-", "null", "an upload without a checksum has no such element"},
	{"list v*", "X-Amz-Bucket-Region", "-", "us-east-1", "S3 documents the header for HeadBucket only"},
	{"list v2, start-after*", "ListBucketResult/ContinuationToken", "-", "present", "a request without a token has none in its answer"},
	{"list v2, start-after inside a prefix", "ListBucketResult/CommonPrefixes/Prefix", "dir/ dir2/", "dir2/", "a name behind start-after counts, also if its common prefix sorts before"},
	{"list v2, start-after inside a prefix", "ListBucketResult/KeyCount", "3", "2", "a name behind start-after counts, also if its common prefix sorts before"},
	{"list v1, page", "ListBucketResult/NextMarker", "-", "dir/2", "S3 returns it only with a delimiter"},
	{"list v1, encoded", "ListBucketResult/Contents/Key", "*", "*", "versitygw ignores encoding-type"},
	{"list v1, encoded", "ListBucketResult/EncodingType", "url", "-", "versitygw ignores encoding-type"},
	{"list v1, unknown encoding", "answer", "400 InvalidArgument", "200", "versitygw ignores encoding-type"},
	{"list v2, malformed token", "answer", "400 InvalidArgument", "200", "versitygw takes every text for a token"},
	{"*", "X-Amz-Storage-Class", "-", "STANDARD", "S3 returns the header for other classes only"},
	{"head bucket", "Content-Type", "application/xml", "-", "as S3 answers; there is no body"},
	{"head *", "Content-Type", "-", "application/xml", "an error of HEAD has no body"},
	{"head, *", "Content-Type", "-", "application/xml", "an error of HEAD has no body"},
	{"if-none-match*", "Content-Type", "-", "application/xml", "304 has no body"},
	{"if-none-match*", "Etag", "*", "-", "RFC 9110 requires it with 304"},
	{"if-none-match*", "Last-Modified", "present", "-", "sent with the ETag"},
	{"if-modified-since, future", "answer", "304", "200", "RFC 9110 compares dates in the future too"},
	{"range, *", "Content-Range", "*", "-", "RFC 9110 names the size of the object with 416"},
	{"create bucket, other location", "answer", "400 IllegalLocationConstraintException", "400 InvalidLocationConstraint", "the code of S3 for a region of another endpoint"},
	{"put, unknown storage class", "answer", "400 InvalidStorageClass", "200", "versitygw ignores the class"},
	{"put, key not UTF-8", "answer", "400 InvalidURI", "403 SignatureDoesNotMatch", "the signature is correct, the key is not"},
	{"get, version null", "answer", "200", "400 InvalidArgument", "S3 accepts null in a bucket without versions"},
	{"object ACL", "answer", "200", "501 NotImplemented", "clients ask for it, and the owner has full control"},
	{"object ACL, missing key", "answer", "404 NoSuchKey", "501 NotImplemented", "clients ask for it, and the owner has full control"},
	{"copy if source does not match", "answer", "412 PreconditionFailed", "304", "S3 documents 412 for copies"},
	{"delete objects, quiet", "DeleteResult/Deleted/Key", "-", "dir/2", "versitygw ignores Quiet"},
	{"delete objects, not XML", "answer", "400 MalformedXML", "400 InvalidRequest", "the code of S3"},
	{"delete objects, none", "answer", "400 MalformedXML", "200", "S3 requires a key"},
	{"part, copied, malformed range", "answer", "400 InvalidArgument", "200", "S3 requires both ends of the range"},
	{"complete, wrong order", "answer", "400 InvalidPartOrder", "400 EntityTooSmall", "the order is checked first"},
	{"unknown access key", "answer", "403 InvalidAccessKeyId", "404 XAdminUserNotFound", "the code of S3"},
	{"presigned, not yet valid", "answer", "403 AccessDenied", "200", "S3 rejects a URL from the future"},
	{"malformed authorization", "answer", "400 AuthorizationHeaderMalformed", "403 AccessDenied", "the code of S3"},
}
