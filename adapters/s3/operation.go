package s3

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// An Op is an operation of S3.
type Op uint8

// The operations.
const (
	Unknown Op = iota
	ListBuckets
	CreateBucket
	HeadBucket
	DeleteBucket
	GetBucketLocation
	GetBucketVersioning
	GetBucketAcl
	ListObjects
	ListObjectsV2
	ListMultipartUploads
	DeleteObjects
	PutObject
	CopyObject
	GetObject
	HeadObject
	DeleteObject
	GetObjectAcl
	GetObjectTagging
	CreateMultipartUpload
	UploadPart
	UploadPartCopy
	ListParts
	CompleteMultipartUpload
	AbortMultipartUpload
	numOps
)

var opNames = [numOps]string{"Unknown", "ListBuckets", "CreateBucket", "HeadBucket", "DeleteBucket", "GetBucketLocation", "GetBucketVersioning",
	"GetBucketAcl", "ListObjects", "ListObjectsV2", "ListMultipartUploads", "DeleteObjects", "PutObject", "CopyObject", "GetObject", "HeadObject",
	"DeleteObject", "GetObjectAcl", "GetObjectTagging", "CreateMultipartUpload", "UploadPart", "UploadPartCopy", "ListParts", "CompleteMultipartUpload", "AbortMultipartUpload"}

// String returns the name of the operation in S3, or Unknown.
func (o Op) String() string {
	if o >= numOps {
		o = Unknown
	}
	return opNames[o]
}

// Transfers reports whether the operation moves the bytes of objects.
func (o Op) Transfers() bool {
	switch o {
	case PutObject, GetObject, UploadPart, UploadPartCopy, CompleteMultipartUpload:
		return true
	default:
		return false
	}
}

// Lists reports whether the operation reads a list of names.
func (o Op) Lists() bool {
	switch o {
	case ListBuckets, ListObjects, ListObjectsV2, ListMultipartUploads:
		return true
	default:
		return false
	}
}

// Ops lists the operations, Unknown first.
func Ops() []Op {
	all := make([]Op, numOps)
	for i := range all {
		all[i] = Op(i)
	}
	return all
}

// A target is what the path and the host of a request name.
type target struct {
	bucket, key string // empty: none
}

// targetOf returns the bucket and the key of a request. With a domain, BUCKET.DOMAIN is the virtual host of a bucket.
func targetOf(r *http.Request, domain string) target {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if bucket, ok := virtualHost(r.Host, domain); ok {
		return target{bucket, path}
	}
	bucket, key, _ := strings.Cut(path, "/")
	return target{bucket, key}
}

// virtualHost returns the bucket that a host names.
func virtualHost(host, domain string) (bucket string, ok bool) {
	if domain == "" || len(host) <= len(domain) {
		return "", false
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(host, ".")
	at := len(host) - len(domain) - 1
	if at <= 0 || host[at] != '.' || !strings.EqualFold(host[at+1:], domain) {
		return "", false
	}
	return strings.ToLower(host[:at]), true
}

// A selection is the set of the subresources that a query names.
type selection uint16

// The subresources that select an operation, and all others.
const (
	ofACL selection = 1 << iota
	ofDelete
	ofListType2
	ofLocation
	ofPartNumber
	ofTagging
	ofUploadID
	ofUploads
	ofVersioning
	ofOther // that are not implemented
)

// implemented are the subresources that select an operation.
var implemented = map[string]selection{"acl": ofACL, "delete": ofDelete, "list-type": ofListType2, "location": ofLocation,
	"partNumber": ofPartNumber, "tagging": ofTagging, "uploadId": ofUploadID, "uploads": ofUploads, "versioning": ofVersioning}

// notImplemented are the subresources of S3 that have no operation here.
var notImplemented = []string{"abac", "accelerate", "analytics", "append", "attributes", "cors", "encryption", "intelligent-tiering", "inventory",
	"legal-hold", "lifecycle", "logging", "metadataConfiguration", "metadataInventoryTable", "metadataJournalTable", "metadataTable", "metrics",
	"notification", "object-lock", "ownershipControls", "policy", "policyStatus", "publicAccessBlock", "renameObject", "replication",
	"requestPayment", "restore", "retention", "select", "session", "torrent", "versions", "website"}

// selectionOf reads the names of a query.
func selectionOf(query string) (s selection) {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if strings.IndexByte(name, '%') >= 0 {
			name, _ = url.QueryUnescape(name)
		}
		of := implemented[name]
		switch {
		case of == 0 && slices.Contains(notImplemented, name):
			s |= ofOther
		case of != ofListType2:
			s |= of
		case value == "2":
			s |= of
		}
	}
	return s
}

// has reports whether s has a subresource.
func (s selection) has(of selection) bool { return s&of != 0 }

// Operation returns the operation that a request asks for. It reads the method, the path, the host, the names of the
// query and the header x-amz-copy-source.
func (h *Handler) Operation(r *http.Request) Op {
	op, _ := operationOf(r, targetOf(r, h.Domain))
	return op
}

// operationOf returns the operation of a request. allowed is false if no resource of this kind has the method.
func operationOf(r *http.Request, t target) (op Op, allowed bool) {
	s := selectionOf(r.URL.RawQuery)
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete:
	default:
		return Unknown, false
	}
	switch {
	case t.bucket == "":
		if r.Method == http.MethodGet && t.key == "" {
			return ListBuckets, true
		}
		return Unknown, false
	case s.has(ofOther):
		return Unknown, true
	case t.key == "":
		return bucketOperation(r.Method, s), true
	}
	return objectOperation(r.Method, s, len(r.Header["X-Amz-Copy-Source"]) > 0)
}

func bucketOperation(method string, s selection) Op {
	switch method {
	case http.MethodGet:
		switch {
		case s.has(ofTagging):
			return Unknown
		case s.has(ofACL):
			return GetBucketAcl
		case s.has(ofLocation):
			return GetBucketLocation
		case s.has(ofVersioning):
			return GetBucketVersioning
		case s.has(ofUploads):
			return ListMultipartUploads
		case s.has(ofListType2):
			return ListObjectsV2
		}
		return ListObjects
	case http.MethodHead:
		return HeadBucket
	case http.MethodPost:
		if s.has(ofDelete) {
			return DeleteObjects
		}
	case http.MethodPut:
		if s == 0 {
			return CreateBucket
		}
	case http.MethodDelete:
		if s == 0 {
			return DeleteBucket
		}
	}
	return Unknown
}

func objectOperation(method string, s selection, copies bool) (op Op, allowed bool) {
	switch method {
	case http.MethodGet:
		switch {
		case s.has(ofACL):
			return GetObjectAcl, true
		case s.has(ofTagging):
			return GetObjectTagging, true
		case s.has(ofUploadID):
			return ListParts, true
		}
		return GetObject, true
	case http.MethodHead:
		return HeadObject, true
	case http.MethodPut:
		return putOperation(s, copies), true
	case http.MethodPost:
		switch {
		case s.has(ofUploads):
			return CreateMultipartUpload, true
		case s.has(ofUploadID):
			return CompleteMultipartUpload, true
		}
		return Unknown, false
	default:
		switch {
		case s == ofUploadID:
			return AbortMultipartUpload, true
		case s == 0:
			return DeleteObject, true
		}
		return Unknown, true
	}
}

func putOperation(s selection, copies bool) Op {
	parts := s.has(ofUploadID | ofPartNumber)
	switch {
	case s&^(ofUploadID|ofPartNumber) != 0:
		return Unknown
	case parts && copies:
		return UploadPartCopy
	case parts:
		return UploadPart
	case copies:
		return CopyObject
	}
	return PutObject
}
