package config

import (
	"fmt"
	"path/filepath"
)

// objectsDir is the directory of the only provider of a node without storage.providers, below the data directory.
const objectsDir = "objects"

// ObjectProviders returns the providers of objects, each with its absolute or relative path as this process sees it.
func (c *Config) ObjectProviders() []Provider {
	if len(c.Storage.Providers) == 0 {
		return []Provider{{Name: "local", Path: filepath.Join(c.Data, objectsDir), Weight: 1, Domain: "local"}}
	}
	all := make([]Provider, len(c.Storage.Providers))
	for i, p := range c.Storage.Providers {
		p.Path = c.providerPath(p.Path)
		all[i] = p
	}
	return all
}

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

// provider checks that no other provider has the name or the path.
func (c *Config) provider(at int, refuse refuser) {
	p := &c.Storage.Providers[at]
	for i := range at {
		other := &c.Storage.Providers[i]
		if other.Name == p.Name {
			refuse(".name", "is %s again: storage.providers[%d] has it", p.Name, i)
		}
		if c.providerPath(other.Path) == c.providerPath(p.Path) {
			refuse(".path", "is %s, which is the directory of provider %s: two copies in one directory are one", p.Path, other.Name)
		}
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
