package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"macronode/core/coding"
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
	switch {
	case c.Storage.Copies > 0:
		return c.Storage.Copies
	case c.ObjectCoding().IsSet(): // small objects can lose as many providers as others
		return int(c.ObjectCoding().Parity) + 1
	}
	return min(2, c.domains())
}

// ObjectCoding returns the shards of larger objects; zero: all have copies.
func (c *Config) ObjectCoding() coding.Scheme {
	s, _ := coding.Parse(c.Storage.Coding)
	return s
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

// coding checks that there is a failure domain for each shard, and that an object survives the loss of one.
func (c *Config) coding() error {
	s, is := &c.Storage, c.ObjectCoding()
	layer := c.layer("storage.coding")
	switch {
	case s.Coding == "":
		return nil
	case !is.IsSet():
		return fmt.Errorf("storage.coding (%s) is %q: must be the numbers of data and parity shards, such as 6+3: at least 2 and 1, together at most %d", layer, s.Coding, coding.MaxShards)
	case is.Shards() > c.domains():
		return fmt.Errorf("storage.coding (%s) is %v: must have at most as many shards as there are failure domains of storage.providers (%s): it has %d, and there are %d domains",
			layer, is, c.layer("storage.providers"), is.Shards(), c.domains())
	case s.Copies == 1:
		return fmt.Errorf("storage.copies (%s) is 1: must be at least 2 with storage.coding, because objects of at most %d bytes have copies", c.layer("storage.copies"), is.Stripe())
	case s.Required > int(is.Parity):
		return fmt.Errorf("storage.copies_required (%s) is %d: must be at most the number of parity shards of storage.coding (%s), which is %d",
			c.layer("storage.copies_required"), s.Required, layer, is.Parity)
	}
	return nil
}

// copies checks that there are failure domains for all copies.
func (c *Config) copies() error {
	if err := c.coding(); err != nil {
		return err
	}
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
