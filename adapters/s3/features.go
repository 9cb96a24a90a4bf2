package s3

// A Feature is one line of docs/s3.md, with the test that shows it.
type Feature struct{ Name, What, Test string }

// A Chapter is one table of docs/s3.md.
type Chapter struct {
	Title, Text string
	Features    []Feature
}

// Chapters are the tables of docs/s3.md. The first one has the operations.
var Chapters = []Chapter{
	{"Operations", "Every other operation of S3 is answered with `501 NotImplemented`; a method that no resource has, with `405 MethodNotAllowed`.", []Feature{
		{"ListBuckets", "the buckets of the tenant; `prefix`, `max-buckets`, `continuation-token`, `bucket-region`", "TestBucketsArePaged"},
		{"CreateBucket", "the location constraint is absent or the region of the node; a bucket that exists is `409 BucketAlreadyOwnedByYou`", "TestBuckets"},
		{"HeadBucket", "the region is in `x-amz-bucket-region`", "TestBuckets"},
		{"DeleteBucket", "only without objects and uploads, else `409 BucketNotEmpty`", "TestDeleteBucket"},
		{"GetBucketLocation", "the region of the node; empty for us-east-1", "TestBuckets"},
		{"GetBucketVersioning", "never enabled", "TestBuckets"},
		{"GetBucketAcl", "always the same: the owner has `FULL_CONTROL`", "TestBuckets"},
		{"ListObjects", "`prefix`, `delimiter`, `marker`, `max-keys` up to 1000, `encoding-type=url`", "TestListsAgreeWithModel"},
		{"ListObjectsV2", "as version 1, with `continuation-token`, `start-after`, `fetch-owner`", "TestListsAgreeWithModel"},
		{"ListMultipartUploads", "`prefix`, `delimiter`, `key-marker`, `upload-id-marker`, `max-uploads`", "TestListUploadsAndAbort"},
		{"DeleteObjects", "up to 1000 keys; `Quiet`; `Content-MD5` or a checksum is required", "TestDeleteObjects"},
		{"PutObject", "up to 5 GiB; the length is required", "TestPutAndGet"},
		{"CopyObject", "within the tenant; the content is not copied; metadata directive `COPY` or `REPLACE`", "TestCopyObject"},
		{"GetObject", "whole, a range or the number of a part; `response-*` parameters", "TestRanges"},
		{"HeadObject", "as GetObject, without the content", "TestConditionalReads"},
		{"DeleteObject", "`204` also without an object", "TestDeleteObject"},
		{"GetObjectAcl", "always the same: the owner has `FULL_CONTROL`", "TestBucketOwner"},
		{"GetObjectTagging", "an object has no tags; some clients ask before they copy", "TestBucketOwner"},
		{"CreateMultipartUpload", "metadata and the checksum of the object", "TestMultipartUpload"},
		{"UploadPart", "parts 1..10000 in any order; a part with the same number is replaced", "TestMultipartUpload"},
		{"UploadPartCopy", "a whole object (its content is not copied), or a range", "TestUploadPartCopy"},
		{"ListParts", "`part-number-marker`, `max-parts`", "TestListParts"},
		{"CompleteMultipartUpload", "the list is checked; parts that are not listed are removed; a repeated request has the same answer", "TestMultipartUpload"},
		{"AbortMultipartUpload", "the parts are removed", "TestListUploadsAndAbort"},
	}},
	{"Requests", "How requests are signed, addressed and checked.", []Feature{
		{"Signature", "AWS Signature Version 4, in the header or the query; every request must be signed", "TestPresigned"},
		{"Chunked bodies", "`aws-chunked` with signed or unsigned chunks and trailers, and unsigned bodies", "TestUnsignedAndStreamingBodies"},
		{"Bucket in the path", "`/BUCKET/KEY`", "TestPutAndGet"},
		{"Bucket in the host", "`BUCKET.DOMAIN`, if the node has a domain", "TestVirtualHost"},
		{"Keys", "1..1024 bytes of UTF-8; a key that is an address names its content only, and no multipart upload", "TestNativeObjects"},
		{"Content-MD5", "verified before the object exists", "TestRefusedBodiesLeaveNoObject"},
		{"Checksums", "CRC32, CRC32C, CRC64NVME, SHA1 and SHA256 are verified, stored and returned with `x-amz-checksum-mode: ENABLED`", "TestChecksums"},
		{"Checksums of uploads in parts", "`COMPOSITE` and `FULL_OBJECT`; those of listed parts and of the object are verified", "TestMultipartChecksums"},
		{"Checksum algorithm of a part", "that of its upload, if that has one; else `400 InvalidRequest`", "TestPartsHaveChecksumOfUpload"},
		{"Conditional reads", "`If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`, `If-Range`", "TestConditionalReads"},
		{"Conditional writes", "`If-None-Match: *` and `If-Match` of PutObject, CopyObject and CompleteMultipartUpload; two writers never both succeed", "TestConditionalWrites"},
		{"Conditional copies", "`x-amz-copy-source-if-*`", "TestCopyObject"},
		{"Metadata", "`x-amz-meta-*` up to 2 KiB, `Content-Type`, `-Encoding`, `-Disposition`, `-Language`, `Cache-Control`, `Expires`", "TestObjectHeadersAreKept"},
		{"Scopes", "reads need the scope `read` of the API key, writes `store`; copies need both", "TestScopes"},
		{"Owner", "the ID of an owner is the number of the tenant; `x-amz-expected-bucket-owner` is checked", "TestBucketOwner"},
		{"Errors", "documents with `Code`, `Message`, `Resource` and `RequestId`; without a body after HEAD", "TestErrors"},
		{"Overload", "`503 SlowDown` or `503 ServiceUnavailable` with `Retry-After`", "TestOutcomes"},
		{"Quotas", "`403 QuotaExceeded`, before the body is read if the length shows it", "TestQuotas"},
	}},
	{"Deviations", "Where the node differs from S3.", []Feature{
		{"Durability of an unknown outcome", "if the outcome of a write is not known in time, the answer is `500 InternalError`; a retry is safe", "TestOutcomes"},
		{"Damage", "each part of a response is verified before it is sent; damage behind the first 64 KiB ends the connection, never with a short success", "TestDamagedObjectIsNotSent"},
		{"ETag of native objects", "an object that was stored under its address has the begin of the address and `-0`", "TestNativeObjects"},
		{"Size of an object", "at most 5 GiB, also in parts", "TestUploadsAreRefusedBeforeTheBody"},
		{"Slow completions", "after five seconds the answer begins with `200` and blanks; its document says whether it failed", "TestSlowCompletionKeepsConnection"},
		{"Changing uploads", "if listed parts change while an upload is completed, the answer is `InvalidPart` or `409 OperationAborted`", "TestCompleteReadsPartsAgain"},
		{"Late repetitions", "a repeated CompleteMultipartUpload is `404 NoSuchUpload` if the object was overwritten or deleted since: the node keeps no list of completed uploads, S3 keeps one for some time", "TestCompletionIsNotRepeatedAfterAChange"},
		{"Checksums of parts", "ListParts does not show them; they are computed again when the upload is completed", "TestListParts"},
		{"Parts of different sizes", "GetObject by the number of a part is `501 NotImplemented` unless all parts but the last one have one size", "TestUnevenPartsHaveNoNumbers"},
		{"Checksum of a copy", "that of its source; `x-amz-checksum-algorithm` is ignored", "TestChecksums"},
		{"Early refusals", "a client that does not wait for `100 Continue` may see a closed connection instead of the answer to a large body", "TestQuotas"},
		{"Control characters", "in lists, characters that XML does not allow are replaced unless `encoding-type=url` is set", "TestListReplacesControlCharacters"},
		{"Access lists", "`x-amz-acl` is `private`, `bucket-owner-read` or `bucket-owner-full-control`; grants are `501 NotImplemented`", "TestErrors"},
		{"Storage classes", "only `STANDARD`", "TestErrors"},
		{"Versions, tags, locks, encryption, website, policies, CORS, lifecycle", "`501 NotImplemented`; `versionId` is `null` or `400 InvalidArgument`", "TestErrors"},
		{"Conditional deletions", "`501 NotImplemented`", "TestDeleteObject"},
		{"Form uploads", "a presigned POST is `501 NotImplemented`", "TestOtherSignaturesAreRefused"},
		{"Signature version 2", "`400 InvalidRequest`", "TestOtherSignaturesAreRefused"},
		{"Existing buckets", "a bucket that the native API made by storing an object can be created once", "TestImplicitBucket"},
	}},
}
