package kill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

// The content of a resumable upload, and its smallest part.
const (
	uploadSize = 5<<20 + 4321
	uploadPart = 1 << 20
)

// A SharedUpload is a resumable upload that several clients send. When it is completed, they begin the next one.
type SharedUpload struct {
	mu      sync.Mutex
	dice    types.Rand
	content []byte
	path    string // of the object
	id      string // of the upload; empty: it has not begun
	durable uint64 // bytes that were acknowledged

	Parts, Moved, Completed int
}

// NewSharedUpload returns an upload with a number.
func NewSharedUpload(number uint64) *SharedUpload {
	u := &SharedUpload{dice: types.NewRand(number), content: make([]byte, uploadSize)}
	u.next()
	return u
}

// next chooses the next content.
func (u *SharedUpload) next() {
	for i := range 64 { // the rest may be zero: the parts differ by their position and size
		u.content[i*uploadSize/64] = byte(u.dice.Uint64n(256))
	}
	u.path, u.id, u.durable = "/o/"+storage.Address(digest.Sum(u.content)).String(), "", 0
}

// UploadClient is one of the clients of an upload.
type UploadClient struct{ *SharedUpload }

// uploadState is what the node says about an upload.
type uploadState struct {
	ID       string `json:"upload_id"`
	Offset   uint64 `json:"offset,string"`
	Complete bool   `json:"complete"`
}

func (u *SharedUpload) do(ctx context.Context, n *Node, method, path string, body []byte, header ...string) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, n.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return n.do(r, n.Key)
}

// Run sends parts until the node stops answering. A response that contradicts what was acknowledged is an error.
func (c UploadClient) Run(ctx context.Context, n *Node) error {
	for ctx.Err() == nil {
		if end, err := c.step(ctx, n); end || err != nil {
			return err
		}
	}
	return nil
}

// isBusy reports that the node did not decide, or that it is not known what it decided.
func isBusy(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status == http.StatusGatewayTimeout
}

// step asks for the state of the upload and sends the next part. It ends when the node does not answer.
func (u *SharedUpload) step(ctx context.Context, n *Node) (end bool, err error) {
	path, id, err := u.begin(ctx, n)
	if err != nil || id == "" {
		return id == "", err
	}
	s, answered, err := u.state(ctx, n, path, id)
	if err != nil || !answered {
		return !answered, err
	}
	if s.Complete {
		return u.finish(ctx, n, path)
	}
	u.mu.Lock()
	size, complete := uploadPart+u.dice.Uint64n(uploadPart), "?0"
	if u.path != path { // another client has finished it
		u.mu.Unlock()
		return false, nil
	}
	if size >= uploadSize-s.Offset {
		size, complete = uploadSize-s.Offset, "?1"
	}
	part := bytes.Clone(u.content[s.Offset : s.Offset+size])
	u.mu.Unlock()
	status, body, err := u.do(ctx, n, http.MethodPatch, path+"/uploads/"+id, part, "Content-Type", "application/partial-upload",
		"Upload-Offset", strconv.FormatUint(s.Offset, 10), "Upload-Complete", complete)
	if err != nil {
		return true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case status == http.StatusNoContent:
		if u.Parts++; u.path == path {
			u.durable = max(u.durable, s.Offset+size)
		}
	case status == http.StatusConflict && strings.Contains(string(body), "upload_offset_mismatch"), status == http.StatusNotFound: // the other client was faster
		u.Moved++
	case status != http.StatusOK && status != http.StatusCreated && !isBusy(status):
		return false, fmt.Errorf("%d bytes at %d of %s: %d %s", size, s.Offset, path, status, body)
	}
	return false, nil
}

// begin begins the upload if it has not begun. The ID is empty if the node does not answer.
func (u *SharedUpload) begin(ctx context.Context, n *Node) (path, id string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.id == "" {
		status, body, err := u.do(ctx, n, http.MethodPut, u.path, nil, "Upload-Complete", "?0", "Upload-Length", strconv.Itoa(uploadSize))
		var s uploadState
		switch {
		case err != nil:
			return "", "", nil
		case isBusy(status):
			continue
		case status != http.StatusCreated || json.Unmarshal(body, &s) != nil || s.ID == "":
			return "", "", fmt.Errorf("begin of %s: %d %s", u.path, status, body)
		}
		u.id = s.ID
	}
	return u.path, u.id, nil
}

// state asks for the state. It has at least what was acknowledged before.
func (u *SharedUpload) state(ctx context.Context, n *Node, path, id string) (s uploadState, answered bool, err error) {
	u.mu.Lock()
	durable := u.durable
	if u.path != path {
		durable = 0
	}
	u.mu.Unlock()
	for ctx.Err() == nil {
		status, body, err := u.do(ctx, n, http.MethodGet, path+"/uploads/"+id, nil)
		switch {
		case err != nil:
			return s, false, nil
		case isBusy(status):
			continue
		case status != http.StatusOK || json.Unmarshal(body, &s) != nil || s.Offset < durable:
			return s, true, fmt.Errorf("state of %s, of which %d bytes were acknowledged: %d %s", path, durable, status, body)
		}
		return s, true, nil
	}
	return s, false, nil
}

// finish compares the object with the content, and goes on with the next one.
func (u *SharedUpload) finish(ctx context.Context, n *Node, path string) (end bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.path != path {
		return false, nil
	}
	switch status, body, err := u.do(ctx, n, http.MethodGet, path, nil); {
	case err != nil:
		return true, nil
	case isBusy(status):
		return false, nil
	case status != http.StatusOK || !bytes.Equal(body, u.content):
		return false, errors.New("the object " + path + " is not the content")
	}
	u.Completed++
	u.next()
	return false, nil
}
