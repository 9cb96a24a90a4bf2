package objectstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/storage"
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

// An Owner is the node that claims directories.
type Owner struct {
	Journal types.JournalID
	Before  types.JournalID // the journal that a restore replaces: a directory that names it is taken over; 0: none is
	Rows    Rows            // of the journal; nil: it has no objects
}

// Rows are the objects of a journal.
type Rows interface {
	HasObjects() bool
	HasFile(a storage.Address, f storage.File) bool
}

func (o *Owner) hasObjects() bool { return o.Rows != nil && o.Rows.HasObjects() }

// Claim makes the directories of all providers those of a node. A directory of another node, or of another provider, is refused: its
// files would be collected. So is one that has files and no identity. A provider whose directory cannot be read is failed; it is claimed
// by Probe. A far provider that can never keep objects safely is refused.
//
// ErrAbsent reports that the directories are not there, none of them. Then the store refuses reads and uploads until Probe finds one.
func (s *Store) Claim(by Owner) error {
	s.owner = by
	var absent error
	for _, p := range s.providers {
		err := s.claim(p, by.Before)
		switch {
		case errors.Is(err, ErrAbsent):
			p.fail(err)
			absent = errors.Join(absent, err)
			continue
		case errors.Is(err, ErrForeign):
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
	switch {
	case s.healthy() > 0: // one that was there before had no identity; Probe claims those that were absent
		return nil
	case absent != nil:
		return absent
	}
	return fmt.Errorf("no provider of objects can be used: %w", errors.New(*s.providers[0].failed.Load()))
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

// Errors of Claim and Probe.
var (
	ErrForeign = errors.New("the directory belongs to another node or provider")
	ErrAbsent  = errors.New("the directory of the objects is not there")
)

// claim checks the identity of the directory of p, and writes it into a new one. If no provider has the directory that it had, p is
// absent.
func (s *Store) claim(p *member, before types.JournalID) error {
	err := s.identify(p, before)
	if len(s.providers) == 1 {
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = fmt.Errorf("%w: %w; %s", ErrAbsent, err, s.remedy(p))
		case p.Own && errors.Is(err, ErrForeign): // the start is not refused
			err = fmt.Errorf("%w: %v", ErrAbsent, err) //nolint:errorlint // it is another error now
		}
	}
	p.absent.Store(errors.Is(err, ErrAbsent))
	return err
}

func (s *Store) identify(p *member, before types.JournalID) error {
	want := p.identity(s.owner.Journal)
	got, err := readFile(p.Port, identityName)
	switch {
	case err == nil && p.isMine(string(got), s.owner.Journal):
		return nil
	case err == nil && before != 0 && p.isMine(string(got), before):
		return writeFile(p.Port, identityName, want, p.Port.Replace)
	case err == nil:
		return s.foreign(p, got, want)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := s.checkNew(p, before); err != nil {
		return err
	}
	err = writeFile(p.Port, identityName, want, p.Port.Put)
	if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) { // another node has claimed it, and has removed the draft of this one in a shared directory
		if got, err = readFile(p.Port, identityName); err == nil && !p.isMine(string(got), s.owner.Journal) {
			err = s.foreign(p, got, want)
		}
	}
	return err
}

// foreign is why a directory with an identity is refused.
func (s *Store) foreign(p *member, got []byte, want string) error {
	return fmt.Errorf("provider %s: its directory says %q, this node wants %q; %s: %w", p.Name, oneLine(string(got)), oneLine(want), s.wayOut(p), ErrForeign)
}

// checkClaimed returns an error if the directory of p is not the one that was claimed. It writes nothing.
func (s *Store) checkClaimed(p *member) error {
	if s.owner.Journal == 0 {
		return nil
	}
	got, err := readFile(p.Port, identityName)
	if err == nil && !p.isMine(string(got), s.owner.Journal) {
		err = ErrForeign
	}
	return err
}

// isMine reports whether an identity is that of p and a journal. The directory in the data directory of a node may have been a named
// provider before.
func (p *member) isMine(got string, of types.JournalID) bool {
	want := p.identity(of)
	if _, journal, ok := strings.Cut(want, "\n"); p.Own && ok {
		return strings.HasSuffix(got, "\n"+journal)
	}
	return got == want
}

// wayOut is what to do about a directory that belongs to another node or provider.
func (s *Store) wayOut(p *member) string {
	if p.Own {
		return s.remedy(p)
	}
	return "correct storage.providers, or empty the directory"
}

// checkNew returns an error unless a directory without an identity may get one: it is new, or an older version of this node made it.
// If the journal has objects, not all directories are new: disks are not mounted.
func (s *Store) checkNew(p *member, before types.JournalID) error {
	names, err := p.Port.List()
	if err != nil {
		return err
	}
	if !p.Own {
		if err := s.checkEmpty(p, names); err != nil {
			return err
		}
	}
	if !s.owner.hasObjects() || slices.ContainsFunc(names, s.isKnown) || slices.ContainsFunc(s.providers, func(m *member) bool { return s.isThere(m, before) }) {
		return nil
	}
	return fmt.Errorf("%w: the one in its place has no file %s and no object; %s", ErrAbsent, identityName, s.remedy(p))
}

// isThere reports whether the directory of p can be read and is the one that p had before.
func (s *Store) isThere(p *member, before types.JournalID) bool {
	got, err := readFile(p.Port, identityName)
	return err == nil && (p.isMine(string(got), s.owner.Journal) || before != 0 && p.isMine(string(got), before))
}

// remedy is what to do if no directory is there.
func (s *Store) remedy(p *member) string {
	return fmt.Sprintf("mount its disk, or put back the objects of a backup; to go on without the objects, make the directory with a file %s that has the two lines %q",
		identityName, p.identity(s.owner.Journal))
}

// isKnown reports whether a name is that of a file which a row of the journal names.
func (s *Store) isKnown(name string) bool {
	f, ok := parseName(name)
	return ok && !f.part && s.owner.Rows != nil && s.owner.Rows.HasFile(f.address, f.file)
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", ", ") }

// checkEmpty refuses a directory with files of others. An upload or a repair that was running when the directory was lost may have
// written into the new one already.
func (s *Store) checkEmpty(p *member, names []string) error {
	for _, n := range names {
		if n == identityName+partSuffix || n == provider.ProbeName {
			continue
		}
		if f, ok := parseName(n); ok && (f.part || s.writes(f.file) || s.isKnown(n)) { // a draft is no object
			continue
		}
		return fmt.Errorf("provider %s: its directory has %s and no file %s; empty it, or choose another directory: %w", p.Name, n, identityName, ErrForeign)
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
