package objectstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/types"
)

// identityName is the name of a file that says to which provider of which node a directory belongs.
const identityName = "provider.id"

// maxIdentity is how many bytes of the file are read at most.
const maxIdentity = 4096

// identity is the content of the file.
func (p *member) identity(of types.JournalID) string {
	return fmt.Sprintf("macronode provider %s\njournal %016x\n", p.Name, uint64(of))
}

// Claim makes the directories of all providers those of the node with a journal. A directory of another node, or of another provider, is
// refused: its files would be collected. So is one that has files and no identity. A directory whose identity names the journal before,
// which a restore replaces, is taken over; 0: none is. A provider whose directory cannot be read is failed; it is claimed by Probe. A
// far provider that can never keep objects safely is refused.
func (s *Store) Claim(journal, before types.JournalID) error {
	s.journal = journal
	for _, p := range s.providers {
		err := s.claim(p, before)
		if errors.Is(err, ErrForeign) {
			return err
		}
		if p.Far {
			_, unwritable := p.Port.Probe(provider.Thorough)
			if errors.Is(unwritable, provider.ErrUnsuitable) {
				return fmt.Errorf("provider %s: %w", p.Name, unwritable)
			}
			err = errors.Join(err, unwritable)
		}
		_ = p.note(err)
	}
	if s.healthy() == 0 {
		return fmt.Errorf("no provider of objects can be used: %w", errors.New(*s.providers[0].failed.Load()))
	}
	return nil
}

// Remake makes the directory of the i-th provider if it is missing, as it is on a new disk.
func (s *Store) Remake(i int) error {
	dir, ok := s.providers[i].Port.Local()
	if !ok {
		return nil
	}
	_, err := fs.Make(string(dir))
	return err
}

// ErrForeign reports a directory that belongs to another node or provider.
var ErrForeign = errors.New("the directory belongs to another node or provider")

func (s *Store) claim(p *member, before types.JournalID) error {
	if p.Own {
		_, err := p.Port.List()
		return err
	}
	want := p.identity(s.journal)
	got, err := readFile(p.Port, identityName)
	switch {
	case err == nil && string(got) == want:
		return nil
	case err == nil && before != 0 && string(got) == p.identity(before):
		return writeFile(p.Port, identityName, want, p.Port.Replace)
	case err == nil:
		return p.foreign(got, want)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := p.checkEmpty(); err != nil {
		return err
	}
	err = writeFile(p.Port, identityName, want, p.Port.Put)
	if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) { // another node has claimed it, and has removed the draft of this one in a shared directory
		if got, err = readFile(p.Port, identityName); err == nil && string(got) != want {
			err = p.foreign(got, want)
		}
	}
	return err
}

// foreign is why a directory with an identity is refused.
func (p *member) foreign(got []byte, want string) error {
	return fmt.Errorf("provider %s: its directory says %q, this node wants %q; correct storage.providers, or empty the directory: %w", p.Name, oneLine(string(got)), oneLine(want), ErrForeign)
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", ", ") }

// checkEmpty refuses a directory with files of others.
func (p *member) checkEmpty() error {
	names, err := p.Port.List()
	if err != nil {
		return err
	}
	for _, n := range names {
		if n != identityName+partSuffix && n != provider.ProbeName {
			return fmt.Errorf("provider %s: its directory has %s and no file %s; empty it, or choose another directory: %w", p.Name, n, identityName, ErrForeign)
		}
	}
	return nil
}

// readFile reads a small file.
func readFile(from provider.Port, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	all := make([]byte, min(size, maxIdentity))
	if _, err = f.ReadAt(all, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// writeFile makes a small file durably. publish gives it its name.
func writeFile(to provider.Port, name, text string, publish func(draft, name string) error) error {
	if err := to.Remove(name + partSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := to.Create(name + partSuffix)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(publish(name+partSuffix, name), to.Flush())
}
