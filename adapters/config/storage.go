package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// objectsDir is the directory of the only provider of a node without storage.providers, below the data directory.
const objectsDir = "objects"

// spoolDir has the drafts of buckets, below the data directory.
const spoolDir = "spool"

// defaultRegion is the region of a bucket.
const defaultRegion = "us-east-1"

// ObjectProviders returns the providers of objects, each with its absolute or relative path as this process sees it.
func (c *Config) ObjectProviders() []Provider {
	if len(c.Storage.Providers) == 0 {
		return []Provider{{Name: "local", Path: filepath.Join(c.Data, objectsDir), Weight: 1, Domain: "local"}}
	}
	all := make([]Provider, len(c.Storage.Providers))
	for i, p := range c.Storage.Providers {
		if p.Path != "" {
			p.Path = c.providerPath(p.Path)
		}
		all[i] = p
	}
	return all
}

// SpoolDir returns the directory of the drafts of a bucket.
func (c *Config) SpoolDir(p *Provider) string { return filepath.Join(c.Data, spoolDir, p.Name) }

func (c *Config) providerPath(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.Data, path)
}

// domains returns the number of failure domains.
func (c *Config) domains() int {
	seen := map[string]bool{}
	for _, p := range c.ObjectProviders() {
		seen[p.Domain] = true
	}
	return len(seen)
}

// ObjectCopies returns how many copies an object has.
func (c *Config) ObjectCopies() int {
	if c.Storage.Copies > 0 {
		return c.Storage.Copies
	}
	return min(2, c.domains())
}

// provider checks what a directory or a bucket needs, and that no other provider has the name or the place.
func (c *Config) provider(at int, refuse refuser) {
	p := &c.Storage.Providers[at]
	p.check(refuse)
	for i := range at {
		other := &c.Storage.Providers[i]
		if other.Name == p.Name {
			refuse(".name", "is %s again: storage.providers[%d] has it", p.Name, i)
		}
		if p.Endpoint != "" && other.Endpoint == p.Endpoint && other.Bucket == p.Bucket && other.Prefix == p.Prefix {
			refuse(".bucket", "is that of provider %s, with the same prefix: two copies in one bucket are one", other.Name)
		}
		if p.Path != "" && other.Path != "" && c.providerPath(other.Path) == c.providerPath(p.Path) {
			refuse(".path", "is %s, which is the directory of provider %s: two copies in one directory are one", p.Path, other.Name)
		}
	}
}

// check checks that a bucket has what it needs, and that a directory has nothing of a bucket.
func (p *Provider) check(refuse refuser) {
	for _, of := range []struct{ key, value string }{{"region", p.Region}, {"bucket", p.Bucket}, {"prefix", p.Prefix}, {"credentials_file", p.Secret}, {"ca_file", p.CA}} {
		needed := of.key == "bucket" || of.key == "credentials_file"
		switch {
		case p.Endpoint == "" && of.value != "":
			refuse("."+of.key, "is set, but the provider is a directory: set endpoint instead of path")
		case p.Endpoint != "" && needed && of.value == "":
			refuse("", "has an endpoint and no %s: set both", of.key)
		}
	}
	if p.CA != "" && strings.HasPrefix(p.Endpoint, "http:") {
		refuse(".ca_file", "is set, but the endpoint is %s, which has no certificate", p.Endpoint)
	}
}

// copies checks that there are failure domains for all copies.
func (c *Config) copies() error {
	s, domains := &c.Storage, c.domains()
	if s.Copies > domains {
		return fmt.Errorf("storage.copies (%s) is %d: must be at most the number of failure domains of storage.providers (%s), which is %d",
			c.layer("storage.copies"), s.Copies, c.layer("storage.providers"), domains)
	}
	if s.Required > c.ObjectCopies() {
		return fmt.Errorf("storage.copies_required (%s) is %d: must be at most storage.copies, which is %d", c.layer("storage.copies_required"), s.Required, c.ObjectCopies())
	}
	return nil
}
