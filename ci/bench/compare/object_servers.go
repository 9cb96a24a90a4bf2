package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"macronode/ci/bench/conf"
	"macronode/ci/bench/objplan"
	"macronode/ci/bench/s3sign"
)

// The servers of objects, in the order of their turns.
const (
	nativeObjects = "macronode"
	s3Objects     = "macronode S3"
	versity       = "versitygw"
	rcloneS3      = "rclone"
	nginxFiles    = "nginx"
)

var objectServers = [...]string{nativeObjects, s3Objects, versity, rcloneS3, nginxFiles}

// An objectServer is a server with a directory of its own.
type objectServer struct {
	*program
	name   string
	dir    string
	addr   netip.AddrPort
	bearer string
	s3     *s3sign.Credentials
}

var peerCredentials = s3sign.Credentials{AccessKey: "bench", Secret: "bench-secret", Region: "us-east-1"}

// objectServer starts a server of objects with an empty bucket.
func (b *bench) objectServer(ctx context.Context, name string) (*objectServer, error) {
	dir, err := os.MkdirTemp(b.work, "objects")
	if err != nil {
		return nil, err
	}
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &objectServer{name: name, dir: dir, addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))}
	setting := conf.Setting{Dir: dir, Port: port, Cores: runtime.NumCPU()}
	c := peerCredentials
	switch name {
	case nativeObjects, s3Objects:
		err = s.startNode(ctx, b, setting)
	case versity:
		s.s3 = &c
		err = s.run(ctx, exec.Command("versitygw", "--port", s.addr.String(), "--access", c.AccessKey, "--secret", c.Secret, "--region", c.Region, "--keep-alive", "--quiet", "posix", files))
	case rcloneS3:
		s.s3 = &c
		err = s.run(ctx, exec.Command("rclone", "serve", "s3", "--config", filepath.Join(dir, "rclone.conf"), "--addr", s.addr.String(), "--auth-key", c.AccessKey+","+c.Secret, files))
	case nginxFiles:
		var file string
		if file, err = conf.Write("nginx-objects.conf", setting); err == nil {
			err = s.run(ctx, exec.Command("nginx", "-e", "stderr", "-p", dir, "-c", file))
		}
	}
	if err == nil && s.s3 != nil {
		_, err = s.send(ctx, http.MethodPut, "/bench", 0, nil)
	}
	if err != nil {
		if s.program != nil {
			err = errors.Join(err, s.close())
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func (s *objectServer) startNode(ctx context.Context, b *bench, setting conf.Setting) error {
	file, err := conf.Write("macronode-objects.yaml", setting)
	if err != nil {
		return err
	}
	n, err := b.serve(ctx, file, filepath.Join(s.dir, "data"))
	if err != nil {
		return err
	}
	s.program = n.program
	key, err := os.ReadFile(n.keyFile())
	if err != nil {
		return err
	}
	if s.name == nativeObjects {
		s.bearer = strings.TrimSpace(string(key))
		s.addr, err = netip.ParseAddrPort(n.http)
		return err
	}
	text, err := exec.CommandContext(ctx, b.binary("macronode"), "keys", "s3", "--json", "--data", n.data).Output()
	if err != nil {
		return fmt.Errorf("keys s3: %w", err)
	}
	s.s3 = &s3sign.Credentials{}
	return json.Unmarshal(text, s.s3)
}

// run starts a program and waits until it answers.
func (s *objectServer) run(ctx context.Context, cmd *exec.Cmd) (err error) {
	cmd.Env = append(os.Environ(), "HOME="+s.dir)
	if s.program, err = start(cmd); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, startLimit)
	defer done()
	for !answers(ctx, s.addr.String()) {
		select {
		case <-s.ended:
			return fmt.Errorf("it ended at the start: %s", s.output.String())
		case <-ctx.Done():
			return fmt.Errorf("it never answered: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// close ends the server and empties its files. They are not removed before the end of the run: ext4 searches long for an inode
// while many were removed in the last minutes.
func (s *objectServer) close() error {
	_ = syscall.Kill(-s.pid(), syscall.SIGKILL) // with its workers; its files are worth nothing
	<-s.ended
	return filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return os.Truncate(path, 0) // its dirty pages are never written
	})
}

// plan returns the part of a plan that names the server and how it is asked.
func (s *objectServer) plan() objplan.Plan {
	return objplan.Plan{Addr: s.addr, Bearer: s.bearer, S3: s.s3}
}

// puts returns a plan for new objects.
func (s *objectServer) puts(salt uint64) objplan.Plan {
	p := s.plan()
	p.Method, p.Status, p.Prefix, p.Salt = http.MethodPut, http.StatusOK, fmt.Sprintf("/bench/%d-", salt), salt
	switch s.name {
	case nativeObjects:
		p.Method, p.Status, p.Prefix, p.Fixed = http.MethodPost, http.StatusCreated, "/o", true
	case nginxFiles:
		p.Status = http.StatusCreated
	}
	return p
}

// store stores an object and returns its path.
func (s *objectServer) store(ctx context.Context, number, size uint64) (path string, err error) {
	path = fmt.Sprintf("/bench/fill-%d-%d", size, number)
	method := http.MethodPut
	if s.name == nativeObjects {
		method, path = http.MethodPost, "/o"
	}
	h, err := s.send(ctx, method, path, size, func() io.Reader {
		content := objplan.Content(min(size, 1<<20))
		first := bytes.Clone(content)
		objplan.Stamp(first, size, number)
		parts := []io.Reader{bytes.NewReader(first)}
		for at := uint64(len(content)); at < size; at += uint64(len(content)) {
			parts = append(parts, bytes.NewReader(content))
		}
		return io.LimitReader(io.MultiReader(parts...), int64(size))
	})
	if at := h.Get("Location"); at != "" && s.name == nativeObjects {
		path = at
	}
	return path, err
}

// send sends one request, whose response must be a success.
func (s *objectServer) send(ctx context.Context, method, path string, size uint64, body func() io.Reader) (http.Header, error) {
	var in io.Reader = http.NoBody
	if size > 0 {
		in = body()
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr.String()+path, in)
	if err != nil {
		return nil, err
	}
	r.ContentLength = int64(size)
	r.Header.Set("Content-Type", "application/octet-stream")
	if s.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+s.bearer)
	}
	if s.s3 != nil {
		lines := strings.TrimSuffix(string(s3sign.New(*s.s3, s.addr.String()).Append(nil, method, path, time.Now())), "\r\n")
		for line := range strings.SplitSeq(lines, "\r\n") {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if resp.StatusCode/100 != 2 {
		err = errors.Join(err, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text))
	}
	return resp.Header, errors.Join(err, resp.Body.Close())
}
