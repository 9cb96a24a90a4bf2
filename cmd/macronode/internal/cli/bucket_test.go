package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// relay forwards connections to a server that may be away, or hang.
type relay struct {
	net.Listener
	mu    sync.Mutex
	to    string // empty: connections are closed; "hang": nothing is forwarded
	conns []net.Conn
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	r := &relay{Listener: l}
	t.Cleanup(func() {
		_ = l.Close()
		r.set("")
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.accept(c)
		}
	}()
	return r
}

func (r *relay) accept(c net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == "" {
		_ = c.Close()
		return
	}
	r.conns = append(r.conns, c)
	if r.to == "hang" {
		return
	}
	up, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = c.Close()
		return
	}
	r.conns = append(r.conns, up)
	for _, pair := range [][2]net.Conn{{c, up}, {up, c}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].Close()
		}()
	}
}

// set forwards further connections to an address, and ends the others.
func (r *relay) set(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// bucketServer is another node, whose S3 interface has a bucket.
type bucketServer struct {
	*relay
	dir, secret string
	flags       []string
	key         struct {
		ID     string `json:"access_key_id"`
		Secret string `json:"secret_access_key"`
	}
	node *testkit.Killable
}

func newBucketServer(t *testing.T, flags ...string) *bucketServer {
	t.Helper()
	s := &bucketServer{relay: newRelay(t), dir: t.TempDir(), secret: filepath.Join(t.TempDir(), "credentials"), flags: flags}
	s.start(t)
	out, err := exec.Command("macronode", "keys", "s3", "--json", "--data", s.dir).Output()
	testkit.Must(t, err)
	testkit.Must(t, json.Unmarshal(out, &s.key))
	testkit.Must(t, os.WriteFile(s.secret, []byte(s.key.ID+"\n"+s.key.Secret+"\n"), 0o600))
	_, err = s.client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("copies")})
	testkit.Must(t, err)
	return s
}

func (s *bucketServer) client() *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: aws.String("http://" + s.Addr().String()), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.key.ID, s.key.Secret, "")})
}

// start runs the server, and forwards connections to it.
func (s *bucketServer) start(t *testing.T) {
	t.Helper()
	s.node = testkit.StartKillable(t, s.dir, append([]string{"--s3", "127.0.0.1:0"}, s.flags...)...)
	run, err := nodedir.Read(s.dir)
	testkit.Must(t, err)
	s.set(run.Listen.S3)
}

// stop kills the server.
func (s *bucketServer) stop() {
	s.set("")
	s.node.End()
}

// keys returns the keys in the bucket.
func (s *bucketServer) keys(t *testing.T) (all []string) {
	t.Helper()
	list, err := s.client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("copies")})
	testkit.Must(t, err)
	for _, o := range list.Contents {
		all = append(all, *o.Key)
	}
	return all
}

// provider is the configuration of the bucket.
func (s *bucketServer) provider() string {
	return fmt.Sprintf(`{"name":"s","endpoint":"http://%s","bucket":"copies","prefix":"node-1","credentials_file":%q}`, s.Addr(), s.secret)
}

// directoryAndBucket configures a directory and a bucket.
func directoryAndBucket(dir string, s *bucketServer) []string {
	return []string{"--set", fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},%s]`, dir, s.provider()), "--set", "storage.repair.interval=20ms"}
}

func bucketContent(n int) []byte {
	return bytes.Repeat([]byte{byte('a' + n)}, []int{5, 200_000, 70_000, 65_536}[n%4]+n/4)
}

// TestBucketKeepsCopies has a directory and a bucket. The server of the bucket dies and hangs: reads and uploads go on. It
// returns: the copies are restored. The directory is lost: the objects are read from the bucket, and its copies are restored.
func TestBucketKeepsCopies(t *testing.T) {
	t.Parallel()
	server, dir, disk := newBucketServer(t), t.TempDir(), filepath.Join(t.TempDir(), "a")
	flags := directoryAndBucket(disk, server)
	k := testkit.StartKillable(t, dir, flags...)
	at := func(n int) string { return "/o/" + storage.Address(digest.Sum(bucketContent(n))).String() }
	uploaded := 0
	upload := func() {
		t.Helper()
		if status, got := k.Object(t, http.MethodPut, at(uploaded), bucketContent(uploaded)); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", uploaded, status, got)
		}
		uploaded++
	}
	read := func() {
		t.Helper()
		for n := range uploaded {
			if status, got := k.Object(t, http.MethodGet, at(n), nil); status != http.StatusOK || !bytes.Equal(got, bucketContent(n)) {
				t.Fatalf("object %d: %d, %d bytes\n%s", n, status, len(got), k.Log)
			}
		}
	}
	run := func(args ...string) string {
		output, _ := exec.Command("macronode", args...).CombinedOutput()
		return string(output)
	}
	becomes := func(want string, args ...string) {
		t.Helper()
		for check := testkit.HangGuard(t); !strings.Contains(run(append(args, "--data", dir)...), want); check() {
			time.Sleep(20 * time.Millisecond)
		}
	}
	complete := func() {
		t.Helper()
		becomes("all objects had their copies at ", "storage", "repair")
		if keys := server.keys(t); len(keys) != uploaded+1 || keys[len(keys)-1] != "node-1/provider.id" {
			t.Fatalf("the bucket has %q", keys)
		}
	}
	for range 3 {
		upload()
	}
	read()
	complete()
	becomes("s (bucket): 3 objects, 270005 bytes; 0 copies missing", "storage", "status")

	server.stop()
	read()
	upload()                                         // it finds the fault, if no probe has
	becomes(`"provider_failed"`, "status", "--json") // beside copies_missing
	upload()
	read()
	server.start(t)
	complete()
	becomes(`"degraded_by":[]`, "status", "--json")

	address := server.to
	server.set("hang")
	upload()
	becomes(`"failure":"`, "storage", "status", "--json")
	read()
	server.set(address)
	complete()

	testkit.Must(t, os.Rename(disk, disk+".gone"))
	read()
	complete()
	if len(copyFiles(disk)) != uploaded {
		t.Errorf("the directory has %d copies", len(copyFiles(disk)))
	}
	if got := run("storage", "scrub", "--data", dir); !strings.Contains(got, " 0 damaged copies\n") {
		t.Errorf("scrub: %s", got)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "spool", "s")); len(left) > 0 || err != nil {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
	k.End()
	if got := run(append([]string{"verify", "--data", dir}, flags[:2]...)...); !strings.Contains(got, fmt.Sprintf("provider s: %d copies intact, 0 missing, 0 damaged", uploaded)) {
		t.Errorf("verify: %s", got)
	}
	if got := run(append([]string{"serve", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, directoryAndBucket(filepath.Join(t.TempDir(), "a"), server)...)...); !strings.Contains(got, "provider s: its directory says") {
		t.Errorf("a node with the bucket of another one: %s", got)
	}
}

// TestOnlyBucket has a bucket alone. While its server hangs or is away, reads and uploads are refused; none of them hangs. A start
// does not need it.
func TestOnlyBucket(t *testing.T) {
	t.Parallel()
	server, dir := newBucketServer(t), t.TempDir()
	k := testkit.StartKillable(t, dir, "--set", "storage.providers=["+server.provider()+"]")
	at := func(n int) string { return "/o/" + storage.Address(digest.Sum(bucketContent(n))).String() }
	for n := range 2 {
		if status, got := k.Object(t, http.MethodPut, at(n), bucketContent(n)); status != http.StatusCreated {
			t.Fatalf("object %d: %d %s", n, status, got)
		}
	}
	read := func() (status int, got []byte) { return k.Object(t, http.MethodGet, at(1), nil) }
	if status, got := read(); status != http.StatusOK || !bytes.Equal(got, bucketContent(1)) {
		t.Fatalf("%d, %d bytes", status, len(got))
	}
	address := server.to
	for i, fault := range []string{"hang", "", "hang", ""} {
		if server.set(fault); i >= 2 { // it also starts without the bucket
			k.End()
			k = testkit.StartKillable(t, dir, "--set", "storage.providers=["+server.provider()+"]")
		}
		if status, got := read(); status != http.StatusServiceUnavailable || !strings.Contains(string(got), `"retryable":true`) {
			t.Fatalf("%q: read: %d %s", fault, status, got)
		}
		if status, got := k.Object(t, http.MethodPut, at(2), bucketContent(2)); status != http.StatusServiceUnavailable {
			t.Fatalf("%q: upload: %d %s", fault, status, got)
		}
	}
	server.set(address)
	for check := testkit.HangGuard(t); ; check() {
		status, got := k.Object(t, http.MethodPut, at(2), bucketContent(2))
		if status == http.StatusCreated {
			break
		}
		if status != http.StatusServiceUnavailable {
			t.Fatalf("afterwards: %d %s", status, got)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if status, got := read(); status != http.StatusOK || !bytes.Equal(got, bucketContent(1)) {
		t.Fatalf("%d, %d bytes", status, len(got))
	}
}

// TestUnsuitableBucketIsRefused: a start with a server that ignores the condition of a put ends with an error.
func TestUnsuitableBucketIsRefused(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	files := map[string][]byte{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		content, there := files[r.URL.Path]
		switch {
		case r.Method == http.MethodPut:
			files[r.URL.Path], _ = io.ReadAll(r.Body)
		case r.Method == http.MethodDelete:
			delete(files, r.URL.Path)
		case r.URL.Query().Has("list-type"):
			_, _ = io.WriteString(w, "<ListBucketResult></ListBucketResult>")
		case !there:
			w.WriteHeader(http.StatusNotFound)
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
		}
	}))
	defer h.Close()
	secret := filepath.Join(t.TempDir(), "credentials")
	testkit.Must(t, os.WriteFile(secret, []byte("id\nsecret\n"), 0o600))
	cmd, log := exec.Command("macronode", "serve", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set",
		fmt.Sprintf(`storage.providers=[{"name":"a","path":%q},{"name":"s","endpoint":%q,"bucket":"copies","credentials_file":%q}]`, t.TempDir(), h.URL, secret)), new(testkit.Output)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	testkit.Must(t, errors.Join(err, cmd.Start()))
	if n, _ := out.Read(make([]byte, 1)); n > 0 { // it is ready
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(log.String(), "provider s: bucket copies at "+h.URL+" ignores the header If-None-Match of a put") {
		t.Errorf("%v, %s", err, log)
	}
}
