package buckets_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/adapters/bucket"
	"macronode/adapters/fs"
	"macronode/adapters/fstest"
	"macronode/adapters/provider"
	"macronode/chaos/kill"
)

var oracle = flag.String("oracle", "", "also test with this binary of versitygw")

// account is an S3 server with a key.
type account struct {
	URL       string `json:"endpoint_url"`
	AccessKey string `json:"access_key_id"`
	Secret    string `json:"secret_access_key"`
}

// TestMacronodeIsProvider runs the contract of providers with buckets of another node.
func TestMacronodeIsProvider(t *testing.T) {
	binary, err := kill.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := &kill.Node{Binary: binary, Data: filepath.Join(t.TempDir(), "data"), Args: []string{"--s3", "127.0.0.1:0"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	out, err := exec.Command(binary, "keys", "s3", "--json", "--data", n.Data).Output()
	if err != nil {
		t.Fatal(err)
	}
	var a account
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	a.contract(t)
}

// TestVersitygwIsProvider runs the contract with another S3 server.
func TestVersitygwIsProvider(t *testing.T) {
	if *oracle == "" {
		t.Skip("no -oracle: ci/run s3compare builds it")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	const key = "oracle"
	cmd := exec.Command(*oracle, "--port", address, "--region", "us-east-1", "--access", key, "--secret", key, "--quiet", "posix", t.TempDir())
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 600 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			account{"http://" + address, key, key}.contract(t)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("versitygw does not listen")
}

// contract runs the contract, and checks that a thorough probe accepts the server and that a wrong key is refused.
func (a account) contract(t *testing.T) {
	var made atomic.Int64
	admin := s3.New(s3.Options{BaseEndpoint: &a.URL, Region: "us-east-1", UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider(a.AccessKey, a.Secret, "")})
	open := func(t *testing.T) provider.Port {
		name := fmt.Sprintf("copies-%d", made.Add(1))
		if _, err := admin.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
			t.Fatal(err)
		}
		return a.bucket(t, name, a.Secret)
	}
	fstest.Provider(t, open)
	wrong := a.bucket(t, "copies-1", "another secret of the same length..")
	if unreadable, unwritable := wrong.Probe(provider.Routine); unreadable == nil || unwritable == nil {
		t.Errorf("a wrong key: %v, %v", unreadable, unwritable)
	}
	if unreadable, unwritable := a.bucket(t, "no-such-bucket", a.Secret).Probe(provider.Thorough); unreadable == nil && unwritable == nil {
		t.Error("a missing bucket is accepted")
	}
}

func (a account) bucket(t *testing.T, name, secret string) *bucket.Bucket {
	dir := t.TempDir()
	file := filepath.Join(dir, "credentials")
	if err := os.WriteFile(file, []byte(a.AccessKey+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spool, err := fs.Make(filepath.Join(dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	return bucket.New(bucket.Config{Endpoint: a.URL, Region: "us-east-1", Bucket: name, Prefix: "node/1", CredentialsFile: file, Spool: spool})
}
