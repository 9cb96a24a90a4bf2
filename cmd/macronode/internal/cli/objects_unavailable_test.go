package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"macronode/cmd/macronode/internal/testkit"
)

// TestMissingObjectDirectoryDegrades: while the directory of the objects is not there, the node is degraded and says
// so; when the directory is back, it is ready.
func TestMissingObjectDirectoryDegrades(t *testing.T) {
	p := startNode(t)
	objects := filepath.Join(p.dir, "objects")
	becomes := func(want string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(p.adminText(t, "/readyz?verbose"), want); check() {
			time.Sleep(10 * time.Millisecond) // until the next probe
		}
	}
	becomes(`"degraded_by":[]`)
	testkit.Must(t, os.Rename(objects, objects+".away"))
	becomes(`"degraded_by":["objects_unavailable","uploads_refused"]`)
	<-p.log.Await("directory of objects cannot be read")
	testkit.Must(t, os.Rename(objects+".away", objects))
	becomes(`"degraded_by":[]`)
	<-p.log.Await("directory of objects can be read and written again")
}
