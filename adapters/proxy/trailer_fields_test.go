package proxy

import (
	"net/http"
	"testing"
)

// TestTrailersNameNoOtherPath: a field that names another path is removed from a trailer too.
func TestTrailersNameNoOtherPath(t *testing.T) {
	trailer := http.Header{"X-Original-Url": {"/admin"}, "X-Rewrite-Url": {"/admin"}, "X_original_url": {"/admin"}, "X-Checksum": {"1"}}
	if removeHeaderOnlyFields(trailer, http.Header{}); len(trailer) != 1 || trailer["X-Checksum"] == nil {
		t.Errorf("%v is left", trailer)
	}
}
