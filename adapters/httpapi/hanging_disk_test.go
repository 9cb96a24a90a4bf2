package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/httpapi"
	"macronode/adapters/objectstore"
	"macronode/chaos/world"
)

// hungDisk is a disk whose writes fail after a while.
type hungDisk struct{ fs.FS }

func (d hungDisk) Create(name string) (fs.File, error) {
	f, err := d.FS.Create(name)
	return hungFile{f}, err
}

type hungFile struct{ fs.File }

var errHung = errors.New("the disk does not answer")

func (hungFile) WriteAt([]byte, int64) (int, error) {
	time.Sleep(2 * serverWriteTimeout)
	return 0, errHung
}

const serverWriteTimeout = time.Second // also of a TLS handshake

// TestLateUploadIsAnswered: an upload gets its answer after the time that the server has for one: the disk has time limits of its own.
func TestLateUploadIsAnswered(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for what, content := range map[string]string{"one group": "a", "several groups": strings.Repeat("b", 150_000)} {
			t.Run(fmt.Sprintf("%s, HTTP/2 %v", what, http2), func(t *testing.T) {
				t.Parallel()
				s := serve(t, build(t), func(c *httpapi.Config) {
					c.Contents = objectstore.New(hungDisk{world.NewDisk()}, objectstore.Limits{Uploads: 3, Object: 2 << 20})
				})
				server := httptest.NewUnstartedServer(s.api)
				server.Config.WriteTimeout, server.EnableHTTP2 = serverWriteTimeout, http2
				server.StartTLS()
				s.url = server.URL
				resp, err := server.Client().Do(s.request("POST", "/o", content))
				if err != nil {
					t.Error(err)
				} else if _, err = io.ReadAll(resp.Body); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusServiceUnavailable || (resp.ProtoMajor == 2) != http2 {
					t.Errorf("%s: %d, %v", resp.Proto, resp.StatusCode, err)
				}
				server.Close()
			})
		}
	}
}
