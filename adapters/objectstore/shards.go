package objectstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"macronode/adapters/erasure"
	"macronode/core/coding"
	"macronode/core/storage"
)

// shardMark begins the end of the name of a shard: ADDRESS-N.rs6-3-8 is the last shard of the scheme 6+3.
const shardMark = ".rs"

func shardName(a storage.Address, f storage.File, s coding.Scheme, shard int) string {
	return name(a, f) + shardSuffix(s, shard)
}

func shardSuffix(s coding.Scheme, shard int) string {
	return fmt.Sprintf("%s%d-%d-%d", shardMark, s.Data, s.Parity, shard)
}

// cutShard cuts the end off the name of a shard. ok is false if the name has none.
func cutShard(name string) (rest string, s coding.Scheme, shard int, ok bool) {
	at := strings.LastIndex(name, shardMark)
	if at < 0 {
		return name, s, 0, false
	}
	numbers := strings.Split(name[at+len(shardMark):], "-")
	if len(numbers) != 3 {
		return name, s, 0, false
	}
	s, ok = coding.Parse(numbers[0] + "+" + numbers[1])
	shard, err := strconv.Atoi(numbers[2])
	if !ok || err != nil || shard < 0 || shard >= s.Shards() || shardSuffix(s, shard) != name[at:] {
		return name, coding.Scheme{}, 0, false
	}
	return name[:at], s, shard, true
}

// NoteSchemes looks for objects that were stored with another scheme than the configuration has. A node does so when it starts.
func (s *Store) NoteSchemes() { _, _ = s.Files() } // which notes them; a provider that fails is read later

// noteSchemes notes the schemes in names of files: a change of the configuration leaves objects as they are.
func (s *Store) noteSchemes(names []string) {
	for _, n := range names {
		if !strings.Contains(n, shardMark) {
			continue
		}
		if _, scheme, _, ok := cutShard(n); ok {
			s.noteScheme(scheme)
		}
	}
}

func (s *Store) noteScheme(scheme coding.Scheme) {
	if slices.Contains(*s.schemes.Load(), scheme) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := *s.schemes.Load(); !slices.Contains(known, scheme) {
		known = append(slices.Clone(known), scheme)
		s.schemes.Store(&known)
	}
}

// schemesOf returns the schemes that an object of a size may have.
func (s *Store) schemesOf(size uint64) (list []coding.Scheme) {
	for _, scheme := range *s.schemes.Load() {
		if scheme.Applies(size) {
			list = append(list, scheme)
		}
	}
	return list
}

// codec returns the codec of a scheme.
func (s *Store) codec(scheme coding.Scheme) *erasure.Codec {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.codecs[scheme]
	if c == nil {
		c = erasure.New(scheme)
		s.codecs[scheme] = c
	}
	return c
}
