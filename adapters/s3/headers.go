package s3

import (
	"slices"
	"strings"
)

// refusedHeaders are headers whose features are not implemented; a name that ends with - is a prefix.
var refusedHeaders = []string{"X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-", "X-Amz-Copy-Source-Server-Side-Encryption-",
	"X-Amz-Grant-", "X-Amz-Object-Lock-", "X-Amz-Tagging", "X-Amz-Website-Redirect-Location", "X-Amz-Write-Offset-Bytes", "X-Amz-Mfa",
	"X-Amz-If-Match-"}

// privateACLs are the canned access lists that mean what every object has: its owner may do everything.
var privateACLs = []string{"private", "bucket-owner-full-control", "bucket-owner-read"}

// checkHeaders refuses headers that ask for more than there is.
func (c *call) checkHeaders() error {
	h := c.r.Header
	for name := range h {
		if !strings.HasPrefix(name, "X-Amz-") {
			continue
		}
		for _, refused := range refusedHeaders {
			if name == refused || refused[len(refused)-1] == '-' && strings.HasPrefix(name, refused) {
				return errNotImplemented.with("Header", strings.ToLower(name))
			}
		}
	}
	notImplemented := func(name string) error { return errNotImplemented.with("Header", name) }
	switch {
	case isSet(h["X-Amz-Acl"]) && !slices.Contains(privateACLs, h["X-Amz-Acl"][0]):
		return notImplemented("x-amz-acl")
	case isSet(h["X-Amz-Storage-Class"]) && h["X-Amz-Storage-Class"][0] != "STANDARD":
		return errStorageClass
	case isSet(h["X-Amz-Tagging-Directive"]) && h["X-Amz-Tagging-Directive"][0] != "COPY":
		return notImplemented("x-amz-tagging-directive")
	case isSet(h["X-Amz-Bucket-Object-Lock-Enabled"]) && !strings.EqualFold(h["X-Amz-Bucket-Object-Lock-Enabled"][0], "false"):
		return notImplemented("x-amz-bucket-object-lock-enabled")
	case isSet(h["X-Amz-Expected-Bucket-Owner"]) && h["X-Amz-Expected-Bucket-Owner"][0] != c.owner().ID,
		isSet(h["X-Amz-Source-Expected-Bucket-Owner"]) && h["X-Amz-Source-Expected-Bucket-Owner"][0] != c.owner().ID:
		return errAccessDenied
	}
	if v, is := c.query["versionId"]; is && v[0] != "null" {
		return errArgument.saying("The node keeps no versions.")
	}
	return nil
}

func isSet(values []string) bool { return len(values) > 0 && values[0] != "" }

// first returns the first value of a header.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
