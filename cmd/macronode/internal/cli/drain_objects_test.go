package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/go-json-experiment/json"

	"macronode/adapters/nodedir"
	"macronode/cmd/macronode/internal/testkit"
	"macronode/core/digest"
	"macronode/core/storage"
)

// TestDrainFinishesUploads terminates a node while it receives the bodies of writes of each kind, which have a price. Each is
// answered as if the node did not drain, and the next start has its effect.
func TestDrainFinishesUploads(t *testing.T) {
	t.Parallel()
	d := newDrainedNode(t)
	contents := make([][]byte, 6)
	for i := range contents {
		contents[i] = bytes.Repeat([]byte{byte('a' + i)}, 300_000)
	}
	at := func(i int) string { return "/o/" + storage.Address(digest.Sum(contents[i])).String() }
	const issue = `{"to":"ann","asset":"EUR/2","amount_minor":"7"}`
	resumed := d.send(http.MethodPut, at(2), "Upload-Complete: ?0\r\n", nil).Header.Get("Location")
	d.sign(http.MethodPut, "/photos", nil)
	text := d.sign(http.MethodPost, "/photos/joined?uploads=", nil)
	id := string(regexp.MustCompile(`<UploadId>(.*)</UploadId>`).FindSubmatch(text)[1])
	part := "/photos/joined?partNumber=%d&uploadId=" + id
	d.sign(http.MethodPut, fmt.Sprintf(part, 1), contents[4])
	tag := regexp.MustCompile(`<ETag>(.*)</ETag>`).FindSubmatch(d.sign(http.MethodGet, "/photos/joined?uploadId="+id, nil))[1]
	completion := fmt.Appendf(nil, "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part></CompleteMultipartUpload>", tag)
	other := d.sign(http.MethodPost, "/photos/parts?uploads=", nil)
	parts := "/photos/parts?partNumber=1&uploadId=" + string(regexp.MustCompile(`<UploadId>(.*)</UploadId>`).FindSubmatch(other)[1])

	all := []*halfSent{
		d.half(http.MethodPut, at(0), "Content-Type: application/octet-stream\r\n", contents[0], http.StatusCreated),
		d.half(http.MethodPost, "/o", "Content-Type: application/octet-stream\r\n", contents[1], http.StatusCreated),
		d.half(http.MethodPatch, resumed, "Content-Type: application/partial-upload\r\nUpload-Offset: 0\r\nUpload-Complete: ?1\r\n", contents[2], http.StatusCreated),
		d.half(http.MethodPost, "/v1/issue", "Content-Type: application/json\r\nIdempotency-Key: k\r\n", []byte(issue), http.StatusOK),
		d.halfSigned(http.MethodPut, "/photos/put", contents[3]),
		d.halfSigned(http.MethodPut, parts, contents[5]),
		d.halfSigned(http.MethodPost, "/photos/joined?uploadId="+id, completion),
	}
	d.drain()
	for _, u := range all {
		u.finish(t)
	}
	d.end()
	if text := d.log.String(); !strings.Contains(text, fmt.Sprintf("finished=%d refused=0 aborted=0 ", len(all))) {
		t.Errorf("%s", text)
	}

	d.start()
	for i := range 3 {
		if got := d.send(http.MethodGet, at(i), "", nil); !bytes.Equal(got.body, contents[i]) {
			t.Errorf("object %d: %s, %d bytes", i, got.Status, len(got.body))
		}
	}
	for key, want := range map[string][]byte{"put": contents[3], "joined": contents[4]} {
		if got := d.sign(http.MethodGet, "/photos/"+key, nil); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes", key, len(got))
		}
	}
	if got := d.sign(http.MethodGet, strings.Replace(parts, "partNumber=1&", "", 1), nil); !bytes.Contains(got, []byte("<Size>300000</Size>")) {
		t.Errorf("the part: %s", got)
	}
	for account, want := range map[string]string{"ann": `"amount_minor":"7"`, "storage:revenue": `"amount_minor":"5"`, "storage:prepaid": `"held_minor":"0"`} {
		if got := d.send(http.MethodGet, "/v1/balance?asset=EUR/2&account="+account, "", nil); !bytes.Contains(got.body, []byte(want)) {
			t.Errorf("%s: %s", account, got.body)
		}
	}
}

// A drainedNode is a node whose writes of objects have a price, with an account that can pay for them.
type drainedNode struct {
	process
	t          *testing.T
	key        string
	credential aws.Credentials
	region     string
	endpoint   string
}

func newDrainedNode(t *testing.T) *drainedNode {
	t.Helper()
	d := &drainedNode{t: t}
	d.dir = t.TempDir()
	d.start()
	d.send(http.MethodPost, "/v1/issue", "Content-Type: application/json\r\nIdempotency-Key: prepay\r\n", []byte(`{"to":"storage:prepaid","asset":"EUR/2","amount_minor":"1000"}`))
	return d
}

// start starts the node in its directory.
func (d *drainedNode) start() {
	d.t.Helper()
	d.process = startInDir(d.t, d.dir, "--set", "node.drain=5m", "--set", "listen.s3=127.0.0.1:0", "--set", "storage.price.per_mib=1", "--set", "storage.price.asset=EUR/2")
	key, err := os.ReadFile(filepath.Join(d.dir, "bootstrap.key"))
	testkit.Must(d.t, err)
	d.key = strings.TrimSpace(string(key))
	text, err := exec.Command("macronode", "--json", "keys", "s3", "--data", d.dir).Output()
	testkit.Must(d.t, err)
	var c struct {
		ID       string `json:"access_key_id"`
		Secret   string `json:"secret_access_key"`
		Region   string `json:"region"`
		Endpoint string `json:"endpoint_url"`
	}
	testkit.Must(d.t, json.Unmarshal(text, &c))
	d.credential, d.region, d.endpoint = aws.Credentials{AccessKeyID: c.ID, SecretAccessKey: c.Secret}, c.Region, c.Endpoint
}

// drain sends the signal and waits until the node drains.
func (d *drainedNode) drain() {
	d.t.Helper()
	run, err := nodedir.Read(d.dir)
	testkit.Must(d.t, err)
	testkit.Must(d.t, syscall.Kill(run.PID, syscall.SIGTERM))
	for check := testkit.HangGuard(d.t); !strings.Contains(d.readyzText(d.t), `"phase":"draining"`); check() {
	}
}

// presigned returns the URL of a request to the S3 listener, without its host.
func (d *drainedNode) presigned(method, target string) string {
	d.t.Helper()
	r, err := http.NewRequest(method, d.endpoint+target, nil) //nolint:noctx // it is only signed
	testkit.Must(d.t, err)
	query := r.URL.Query()
	query.Set("X-Amz-Expires", "600")
	r.URL.RawQuery = query.Encode()
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	url, _, err := signer.PresignHTTP(d.t.Context(), d.credential, r, "UNSIGNED-PAYLOAD", "s3", d.region, time.Now())
	testkit.Must(d.t, err)
	return strings.TrimPrefix(url, d.endpoint)
}

// sign sends a request to the S3 listener, which has to succeed, and returns the body of the answer.
func (d *drainedNode) sign(method, target string, body []byte) []byte {
	d.t.Helper()
	u := d.dial(d.endpoint, method, d.presigned(method, target), "", body)
	_, _ = u.conn.Write(body)
	return u.answer(d.t, http.StatusOK).body
}

// send sends a request with the key of the node and returns the answer.
func (d *drainedNode) send(method, target, header string, body []byte) received {
	d.t.Helper()
	u := d.dial(d.HTTP, method, target, "Authorization: Bearer "+d.key+"\r\n"+header, body)
	_, _ = u.conn.Write(body)
	return u.answer(d.t, 0)
}

// A halfSent is a request on a connection of its own, of which the node reads the body and has half of it.
type halfSent struct {
	what    string
	conn    net.Conn
	answers *bufio.Reader
	rest    []byte
	want    int
}

// A received is an answer and its whole body.
type received struct {
	*http.Response
	body []byte
}

func (d *drainedNode) dial(url, method, target, header string, body []byte) *halfSent {
	d.t.Helper()
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", host)
	testkit.Must(d.t, err)
	d.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n", method, target, host, len(body), header)
	testkit.Must(d.t, err)
	return &halfSent{what: method + " " + target, conn: conn, answers: bufio.NewReader(conn)}
}

// half begins a request. Once the node asks for the body, it gets half of it.
func (d *drainedNode) half(method, target, header string, body []byte, want int) *halfSent {
	d.t.Helper()
	return d.dial(d.HTTP, method, target, "Authorization: Bearer "+d.key+"\r\nExpect: 100-continue\r\n"+header, body).begin(d.t, body, want)
}

// halfSigned begins a request to the S3 listener.
func (d *drainedNode) halfSigned(method, target string, body []byte) *halfSent {
	d.t.Helper()
	return d.dial(d.endpoint, method, d.presigned(method, target), "Expect: 100-continue\r\n", body).begin(d.t, body, http.StatusOK)
}

func (u *halfSent) begin(t *testing.T, body []byte, want int) *halfSent {
	t.Helper()
	u.answer(t, http.StatusContinue)
	_, err := u.conn.Write(body[:len(body)/2])
	testkit.Must(t, err)
	u.rest, u.want = body[len(body)/2:], want
	return u
}

// finish sends the rest of the body and reads the answer.
func (u *halfSent) finish(t *testing.T) {
	t.Helper()
	_, _ = u.conn.Write(u.rest)
	u.answer(t, u.want)
}

// answer reads an answer, which needs a status; 0: any.
func (u *halfSent) answer(t *testing.T, want int) (r received) {
	t.Helper()
	var err error
	if r.Response, err = http.ReadResponse(u.answers, nil); err != nil {
		t.Fatalf("%s: %v", u.what, err)
	}
	defer r.Body.Close()
	if r.body, err = io.ReadAll(r.Body); err != nil || want != 0 && r.StatusCode != want {
		t.Fatalf("%s: %s %s, %v, want %d", u.what, r.Status, r.body, err, want)
	}
	return r
}
