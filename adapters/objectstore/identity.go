package objectstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/storage"
	"macronode/core/types"
)

// identityName is the name of a file that says to which provider of which node a directory belongs.
const identityName = "provider.id"

// isIdentity matches what such a file has, unless it is damaged.
var isIdentity = regexp.MustCompile(`^macronode provider [^\n]+\n(restore of )?journal [0-9a-f]{16}\n$`)

// maxIdentity is how many bytes of the file are read at most.
const maxIdentity = 4096

// identity is the content of the file for an owner, as it is returned by name.
func (p *member) identity(owner string) string {
	return fmt.Sprintf("macronode provider %s\n%s\n", p.Name, owner)
}

// An Owner is the node, or the restore, that claims directories.
type Owner struct {
	Journal   types.JournalID
	Restoring bool            // the directories belong to a restore of a backup of Journal until it is complete. It can be repeated
	Take      bool            // a directory of the same provider of any journal is taken over
	Before    types.JournalID // directories of a restore of this journal are taken over; 0: none are
	Rows      Rows            // of the journal; nil: it has no objects
	Holder    string          // the name of the process that other processes are shown; empty: directories are not locked
}

// nameOf returns the line of an identity that names a journal.
func nameOf(of types.JournalID) string { return fmt.Sprintf("journal %016x", uint64(of)) }

// restoreOf returns the line of an identity that names a restore of a journal. Its directories belong to no node.
func restoreOf(of types.JournalID) string { return "restore of " + nameOf(of) }

// name returns the line of the identities of an owner.
func (o *Owner) name() string {
	if o.Restoring {
		return restoreOf(o.Journal)
	}
	return nameOf(o.Journal)
}

// takes reports whether an owner takes over a directory of p that has an identity.
func (o *Owner) takes(p *member, got string) bool {
	switch {
	case o.Before != 0 && p.isMine(got, restoreOf(o.Before)):
		return true
	case o.Restoring && p.Own: // it is in the data directory, which has no journal
		return o.Take || p.isMine(got, nameOf(o.Journal))
	}
	name, _, ok := strings.Cut(p.identity(""), "\n")
	return o.Take && ok && strings.HasPrefix(got, name+"\n")
}

// A Claimed is a provider whose directory belongs to a journal.
type Claimed struct{ Provider, Owner string }

// Claims returns the providers whose directories a restore of a journal takes over only with Owner.Take. It changes nothing. A provider that
// cannot be read is left out. So is a directory in the data directory.
func (s *Store) Claims(restored types.JournalID) (list []Claimed) {
	for _, p := range s.providers {
		got, err := readFile(p.Port, identityName)
		if err != nil || p.Own || p.isMine(string(got), restoreOf(restored)) {
			continue
		}
		_, owner, _ := strings.Cut(strings.TrimSpace(string(got)), "\n")
		list = append(list, Claimed{p.Name, oneLine(owner)})
	}
	return list
}

// Foreign returns why a node with a journal refuses directories: their identities are damaged, or of another node or provider. It changes
// nothing. A directory that has no identity, that is of a restore, or that cannot be read is left out.
func (s *Store) Foreign(journal types.JournalID) (list []error) {
	for _, p := range s.providers {
		got, err := readFile(p.Port, identityName)
		if err != nil || p.isMine(string(got), nameOf(journal)) {
			continue
		}
		if _, owner, _ := strings.Cut(string(got), "\n"); len(owner) == len(restoreOf(0))+1 && p.isMine(string(got), strings.TrimSuffix(owner, "\n")) && strings.HasPrefix(owner, "restore of ") {
			continue
		}
		want := p.identity(nameOf(journal))
		if !isIdentity.Match(got) {
			list = append(list, fmt.Errorf("provider %s: %w; %s", p.Name, errDamagedIdentity, p.repairIdentity(want)))
			continue
		}
		list = append(list, fmt.Errorf("provider %s: its file %s says %q, a node with this journal wants %q: %w", p.Name, identityName, oneLine(string(got)), oneLine(want), ErrForeign))
	}
	return list
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
// ErrAbsent reports that the directories are not there, none of them, and ErrNoProvider that no provider can be used now. Then the
// store refuses reads and uploads until Probe finds one.
func (s *Store) Claim(by Owner) error {
	s.owner = by
	for _, p := range s.providers {
		p.absent.Store(true) // until it is claimed
	}
	var absent error
	for _, p := range s.providers {
		err := s.claim(p)
		switch {
		case errors.Is(err, ErrAbsent):
			p.fail(err)
			absent = errors.Join(absent, err)
			continue
		case errors.Is(err, ErrForeign), errors.Is(err, fs.ErrHeld):
			return err
		}
		if p.Far && err == nil {
			_, unwritable := p.Port.Probe(provider.Thorough)
			if errors.Is(unwritable, provider.ErrUnsuitable) {
				return fmt.Errorf("provider %s: %w", p.Name, unwritable)
			}
			err = unwritable
		}
		if IsShortage(err) { // the next probe claims it
			p.fail(err)
		} else {
			_ = p.note(err)
		}
	}
	switch {
	case s.healthy() > 0: // one that was there before had no identity; Probe claims those that were absent
		return nil
	case absent != nil:
		return absent
	}
	return fmt.Errorf("%w: %s: %s", ErrNoProvider, s.providers[0].Name, *s.providers[0].failed.Load())
}

// Remake makes the directory of the i-th provider if it is missing, as it is on a new disk.
func (s *Store) Remake(i int) error {
	_, _, err := provider.Change(s.providers[i].Port, func(dir fs.Dir) (fs.Dir, error) { return fs.Make(string(dir)) }, func(fs.Dir) {})
	return err
}

// Errors of Claim and Probe.
var (
	ErrForeign = errors.New("the directory belongs to another node or provider")
	ErrAbsent  = errors.New("the directory of the objects is not there")

	ErrNoProvider = errors.New("no provider of objects can be used")
)

// claim checks the identity of the directory of p, and writes it into a new one. If no provider has the directory that it had, p is
// absent. So is one that was never claimed: it may be of another node.
func (s *Store) claim(p *member) error {
	err := s.identify(p)
	if len(s.providers) == 1 {
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = fmt.Errorf("%w: %w; %s", ErrAbsent, err, s.remedy(p))
		case p.Own && errors.Is(err, ErrForeign): // the start is not refused
			err = fmt.Errorf("%w: %v", ErrAbsent, err) //nolint:errorlint // it is another error now
		}
	}
	if errors.Is(err, ErrForeign) || errors.Is(p.checkLock(), fs.ErrLost) {
		p.release()
	}
	p.claimed = p.claimed || err == nil
	p.absent.Store(errors.Is(err, ErrAbsent) || errors.Is(err, fs.ErrHeld) || !p.claimed)
	return err
}

func (s *Store) identify(p *member) error {
	want, publish := p.identity(s.owner.name()), p.Port.Put
	got, err := readFile(p.Port, identityName)
	switch {
	case err == nil && !p.Far && !isIdentity.Match(got):
		publish = p.Port.Replace // damage says nothing about an owner
	case err == nil && p.isMine(string(got), s.owner.name()):
		return s.lock(p)
	case err == nil && s.owner.takes(p, string(got)):
		if err := s.lock(p); err != nil {
			return err
		}
		return writeFile(p.Port, identityName, want, p.Port.Replace)
	case err == nil:
		return s.foreign(p, got, want)
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := s.checkNew(p); err != nil {
		return err
	}
	if err := s.lock(p); err != nil {
		return err
	}
	err = writeFile(p.Port, identityName, want, publish)
	if errors.Is(err, os.ErrExist) || errors.Is(err, os.ErrNotExist) { // another node has claimed it, and has removed the draft of this one in a shared directory
		if got, err = readFile(p.Port, identityName); err == nil && !p.isMine(string(got), s.owner.name()) {
			err = s.foreign(p, got, want)
		}
	}
	return err
}

// foreign is why a directory with an identity is refused.
func (s *Store) foreign(p *member, got []byte, want string) error {
	if !isIdentity.Match(got) {
		return fmt.Errorf("provider %s: %w; %s", p.Name, errDamagedIdentity, p.repairIdentity(want))
	}
	return fmt.Errorf("provider %s: its directory says %q, this node wants %q; %s: %w", p.Name, oneLine(string(got)), oneLine(want), s.wayOut(p), ErrForeign)
}

// checkClaimed returns an error if the directory of p is not the one that was claimed. It writes nothing.
func (s *Store) checkClaimed(p *member) error {
	if s.owner.Journal == 0 {
		return nil
	}
	if p.absent.Load() {
		return ErrAbsent // another process may hold it
	}
	if err := p.checkLock(); errors.Is(err, fs.ErrLost) {
		return ErrAbsent
	} else if err != nil {
		return err
	}
	got, err := readFile(p.Port, identityName)
	if err == nil && !p.isMine(string(got), s.owner.name()) {
		err = ErrForeign
	}
	return err
}

// checkPlace returns an error if the directory of p is not the one that was claimed: its disk was replaced or is not mounted. A copy there
// would be lost when the disk is back. The place of a far provider does not change.
func (s *Store) checkPlace(p *member) error {
	if p.Far {
		return nil
	}
	return s.checkClaimed(p)
}

// isMine reports whether an identity is that of p and an owner, as it is returned by name. The directory in the data directory of a node may have been a named
// provider before.
func (p *member) isMine(got, owner string) bool {
	want := p.identity(owner)
	if p.Own {
		return strings.HasSuffix(got, "\n"+owner+"\n")
	}
	return got == want
}

// errDamagedIdentity is an ErrForeign: the file does not name an owner, so the directory may be of another one.
var errDamagedIdentity error = damagedIdentity{}

type damagedIdentity struct{}

func (damagedIdentity) Error() string        { return "its file " + identityName + " is empty or damaged" }
func (damagedIdentity) Is(target error) bool { return target == ErrForeign }

// repairIdentity is what to do about a damaged identity. In a far directory none is replaced at a start: another node may be writing it.
func (p *member) repairIdentity(want string) string {
	write := fmt.Sprintf("if the directory belongs to this node, write the two lines %q into it", want)
	if p.Far {
		return write
	}
	return "the next start of the node writes it again if the directory has a file of an object of this node; else, " + write
}

// wayOut is what to do about a directory that belongs to another node or provider.
func (s *Store) wayOut(p *member) string {
	if p.Own {
		return s.remedy(p)
	}
	return "correct storage.providers. Its files may be the only copies of objects: remove none of them. If the other owner is gone, such as a restored node that must not run again, write the two wanted lines into the file " + identityName
}

// checkNew returns an error unless a directory without an identity may get one: it is new, or an older version of this node made it.
// If the journal has objects, not all directories are new: disks are not mounted.
func (s *Store) checkNew(p *member) error {
	names, err := p.Port.List()
	if err != nil {
		return err
	}
	another := slices.ContainsFunc(s.providers, s.isThere)
	if err := s.checkEmpty(p, names); err != nil && !p.Own {
		if s.owner.hasObjects() && another {
			return err // it is failed: the objects are in another one
		}
		return fmt.Errorf("%w: %w", err, ErrForeign)
	}
	if !s.owner.hasObjects() || slices.ContainsFunc(names, s.isKnown) || another {
		return nil
	}
	return fmt.Errorf("%w: the one in its place has no file %s and no object; %s", ErrAbsent, identityName, s.remedy(p))
}

// isThere reports whether the directory of p can be read and is the one that p had before.
func (s *Store) isThere(p *member) bool {
	got, err := readFile(p.Port, identityName)
	return err == nil && (p.isMine(string(got), s.owner.name()) || s.owner.takes(p, string(got)))
}

// remedy is what to do if no directory is there.
func (s *Store) remedy(p *member) string {
	return fmt.Sprintf("mount its disk, or put back the objects of a backup; to go on without the objects, make the directory with a file %s that has the two lines %q",
		identityName, p.identity(s.owner.name()))
}

// isKnown reports whether a name is that of a file which a row of the journal names.
func (s *Store) isKnown(name string) bool {
	f, ok := parseName(name)
	return ok && !f.part && s.owner.Rows != nil && s.owner.Rows.HasFile(f.address, f.file)
}

func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", ", ") }

// checkEmpty refuses a directory with files of others. One with a file that a row names is of this node: files that no row names are
// then of deleted objects. An upload or a repair that was running when the directory was lost may have written into the new one already.
func (s *Store) checkEmpty(p *member, names []string) error {
	if slices.ContainsFunc(names, s.isKnown) {
		return nil
	}
	for _, n := range names {
		if n == identityName || n == identityName+partSuffix || n == lockName || n == provider.ProbeName {
			continue
		}
		if f, ok := parseName(n); ok && (f.part || s.writes(f.file) || s.isOfThisRun(f.file)) { // a draft is no object
			continue
		}
		return fmt.Errorf("provider %s: its directory has %s, no file of an object of this node and no file %s; choose another directory, or move its files elsewhere", p.Name, n, identityName)
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
