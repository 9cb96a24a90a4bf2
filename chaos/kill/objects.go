package kill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"macronode/chaos/charges"
	"macronode/core/digest"
	"macronode/core/storage"
	"macronode/core/types"
)

// objectSizes are the sizes of the shared contents: empty, less than a group, several groups.
var objectSizes = [...]int{0, 7, 65536, 65537, 200_000}

// content returns the n-th content, address its address.
func content(n int) []byte {
	return bytes.Repeat([]byte{byte('a' + n)}, objectSizes[n])
}

func address(n int) string { return storage.Address(digest.Sum(content(n))).String() }

// held is what a client knows about a content in its bucket.
type held uint8

const (
	absent held = iota
	present
	unknown // its last request was not answered
)

// An ObjectClient puts and deletes objects in a bucket of its own. The contents are those of all clients, so each file serves
// several buckets, and is written and removed while others need it.
type ObjectClient struct {
	bucket string
	dice   types.Rand
	knows  [len(objectSizes)]held

	Puts, Deletes, Reads, Cut int
	Removed                   int // of the deletes, those that found an object

	PaidFrom string // the account that pays for requests; empty: they cost nothing
	Rejected int    // requests that it could not pay for

	used map[string]charges.Bound // by route, since the last call of UsedObjects
}

// objectRoutes are the routes of the methods of clients, as their usage has them.
var objectRoutes = map[string]string{http.MethodPut: "put_object", http.MethodDelete: "delete_object", http.MethodGet: "get_object"}

// NewObjectClient returns a client with a number.
func NewObjectClient(number uint64) *ObjectClient {
	return &ObjectClient{bucket: fmt.Sprintf("bucket-%d", number), dice: types.NewRand(number), used: map[string]charges.Bound{}}
}

// uses notes how often a request is counted: at least as often as it has certainly taken effect, and at most as often as it may have been
// served.
func (c *ObjectClient) uses(method string, least, most uint64) {
	b := c.used[objectRoutes[method]]
	b.Least, b.Most = b.Least+least, b.Most+most
	c.used[objectRoutes[method]] = b
}

// UsedObjects returns the bounds of the requests since the last call, which the frames after one and up to another count.
func UsedObjects(all []*ObjectClient, after, upto types.LSN) (bounds []charges.Bound) {
	for method, route := range objectRoutes { //nolint:maporder // the rule is the same for each
		b := charges.Bound{After: after, Upto: upto, Labels: fmt.Sprintf("service=storage,method=%s,route=%s", strings.ToLower(method), route)}
		for _, c := range all {
			b.Least, b.Most = b.Least+c.used[route].Least, b.Most+c.used[route].Most
		}
		bounds = append(bounds, b)
	}
	for _, c := range all {
		clear(c.used)
	}
	return bounds
}

// do sends a request. If it is rejected because it cannot be paid for, the client issues money for a few, and sends it again.
func (c *ObjectClient) do(ctx context.Context, n *Node, method string, object int) (status int, body []byte, err error) {
	for {
		status, body, err = c.send(ctx, n, method, object)
		if status != http.StatusPaymentRequired && status != http.StatusNotFound && !errors.Is(err, syscall.ECONNREFUSED) {
			c.uses(method, 0, 1)
		}
		if err != nil || status != http.StatusPaymentRequired || c.PaidFrom == "" {
			return status, body, err
		}
		c.Rejected++
		if err = issue(ctx, n, fmt.Sprint(c.bucket, "-", c.Rejected), c.PaidFrom, 20); err != nil {
			return 0, nil, err
		}
	}
}

func (c *ObjectClient) send(ctx context.Context, n *Node, method string, object int) (status int, body []byte, err error) {
	var in []byte
	if method == http.MethodPut {
		in = content(object)
	}
	r, err := http.NewRequestWithContext(ctx, method, n.HTTP+"/o/"+address(object)+"?bucket="+c.bucket, bytes.NewReader(in))
	if err != nil {
		return 0, nil, err
	}
	return n.do(r, n.Key)
}

// Run sends requests until the node stops answering. A response that contradicts what the client knows is an
// error.
func (c *ObjectClient) Run(ctx context.Context, n *Node) error {
	for ctx.Err() == nil {
		object, method := int(c.dice.Uint64n(uint64(len(objectSizes)))), http.MethodPut
		switch c.dice.Uint64n(4) {
		case 0:
			method = http.MethodDelete
		case 1:
			method = http.MethodGet
		}
		known := c.knows[object]
		if method != http.MethodGet {
			c.knows[object] = unknown
		}
		status, body, err := c.do(ctx, n, method, object)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				c.Cut++
			}
			return nil
		}
		if strings.Contains(string(body), "could not be written") {
			return fmt.Errorf("%s %s of %d: %s", c.bucket, method, object, body) // the file was removed
		}
		if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status == http.StatusGatewayTimeout {
			continue // of a put or a delete nothing is known now
		}
		if err := c.learn(method, object, known, status, body); err != nil {
			return err
		}
	}
	return nil
}

// learn compares a response with what was known before.
func (c *ObjectClient) learn(method string, object int, known held, status int, body []byte) error {
	wrong := fmt.Errorf("%s %s of %d, known %d: %d %.120s", c.bucket, method, object, known, status, body)
	there := status == http.StatusOK
	switch {
	case method == http.MethodPut && (there || status == http.StatusCreated):
		c.Puts++
		c.uses(method, 1, 0)
		c.knows[object] = present
		if known != unknown && there != (known == present) {
			return wrong
		}
	case method == http.MethodDelete && (there || status == http.StatusNotFound):
		if c.Deletes++; there {
			c.Removed++
			c.uses(method, 1, 0)
		}
		c.knows[object] = absent
		if known != unknown && there != (known == present) {
			return wrong
		}
	case method == http.MethodGet && (there || status == http.StatusNotFound):
		c.Reads++
		if known != unknown && there != (known == present) || there && !bytes.Equal(body, content(object)) {
			return wrong
		}
		if c.knows[object] = absent; there {
			c.knows[object] = present
		}
	default:
		return wrong
	}
	return nil
}

// Hold reads every object, and compares it with what was acknowledged.
func (c *ObjectClient) Hold(ctx context.Context, n *Node) error {
	for object := range objectSizes {
		status, body, err := c.do(ctx, n, http.MethodGet, object)
		if err == nil {
			err = c.learn(http.MethodGet, object, c.knows[object], status, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ObjectFiles returns the files of objects in the directory of a node, and how many distinct contents clients hold.
func ObjectFiles(data string, all []*ObjectClient) (files []string, contents int, err error) {
	found, err := os.ReadDir(filepath.Join(data, "objects"))
	for _, f := range found {
		if !strings.HasSuffix(f.Name(), ".nodes") && f.Name() != "provider.id" {
			files = append(files, f.Name())
		}
	}
	for object := range objectSizes {
		for _, c := range all {
			if c.knows[object] == present {
				contents++
				break
			}
		}
	}
	return files, contents, err
}
