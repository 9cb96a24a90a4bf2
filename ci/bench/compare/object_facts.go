package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"strings"

	"macronode/ci/bench/sheet"
)

// objectFacts returns the machine, the versions and the settings that the numbers of objects depend on.
func (b *bench) objectFacts(ctx context.Context) ([]sheet.Fact, error) {
	all, err := b.hostFacts(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range [...]string{versity, rcloneS3} {
		if at, err := objectPeer(ctx, name); err == nil {
			if is, err := buildinfo.ReadFile(at); err == nil {
				all = append(all, sheet.Fact{What: name, Is: is.Main.Path + " " + is.Main.Version + ", " + is.GoVersion})
			}
		}
	}
	if out, err := exec.CommandContext(ctx, "nginx", "-v").CombinedOutput(); err == nil {
		all = append(all, sheet.Fact{What: nginxFiles, Is: strings.TrimSpace(string(out))})
	}
	return append(all, b.turns()), nil
}

// objectPeer returns the program of a peer.
func objectPeer(ctx context.Context, name string) (string, error) {
	at, err := exec.LookPath(objectPeers[name])
	if err != nil {
		return "", fmt.Errorf("%s is not installed", objectPeers[name])
	}
	if name == rcloneS3 { // older versions serve no S3
		if out, err := exec.CommandContext(ctx, at, "serve", "--help").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("\n  s3 ")) {
			return "", fmt.Errorf("%s is a version without serve s3", at)
		}
	}
	return at, nil
}
