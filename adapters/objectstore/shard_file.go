package objectstore

import (
	"macronode/adapters/fs"
	"macronode/adapters/provider"
	"macronode/core/coding"
	"macronode/core/digest"
	"macronode/core/storage"
)

// shardFile is an open shard.
type shardFile struct {
	Part
	row  storage.Stored
	data fs.File
	nodeReader
}

// openShard opens the file of a shard. ErrDamaged reports that it has another length.
func (s *Store) openShard(o storage.Stored, part Part, pace *pacing) (*shardFile, error) {
	p := s.providers[part.Provider]
	if p.absent.Load() {
		return nil, ErrAbsent
	}
	f, err := p.openShard(o, part, pace)
	if err != nil {
		return nil, p.note(err)
	}
	return f, nil
}

func (m *member) openShard(o storage.Stored, part Part, pace *pacing) (*shardFile, error) {
	file := shardName(o.Address, o.File, part.Scheme, part.Shard)
	data, err := provider.OpenContent(m.Port, file)
	if err != nil {
		return nil, gone(err)
	}
	x := &shardFile{Part: part, row: o, data: data, nodeReader: nodeReader{pacing: pace, nodes: data, nodesAt: part.Size(o)}}
	if err = x.checkLengths(m, file); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// checkLengths opens the file of the nodes, if they are not behind the content, and compares the lengths of the files with those of the shard.
func (f *shardFile) checkLengths(m *member, name string) error {
	nodes := int64(digest.NodeLen * (digest.Groups(f.row.Size) - 1))
	size, err := f.data.Size()
	switch {
	case err != nil:
		return err
	case size == int64(f.nodesAt)+nodes:
		return nil
	case size != int64(f.nodesAt):
		return ErrDamaged
	}
	separate, err := provider.OpenContent(m.Port, name+nodesSuffix)
	if err != nil {
		return gone(err)
	}
	f.nodes, f.nodesAt = separate, 0
	if size, err = separate.Size(); err == nil && size != nodes {
		err = ErrDamaged
	}
	return err
}

func (f *shardFile) close() {
	_ = f.data.Close() // they were only read
	if f.nodes != f.data {
		_ = f.nodes.Close()
	}
}

// read reads what the shard has of a stripe into a buffer of that length. A block of parity is compared with its checksum.
func (f *shardFile) read(stripe uint64, to []byte) error {
	off, length := f.Scheme.At(f.row.Size, stripe, f.Shard)
	if err := f.wait(length); err != nil {
		return err
	}
	if err := readFull(f.data, to[:length], off); err != nil || f.Scheme.IsData(f.Shard) {
		return err
	}
	block, sum := to[:length-coding.ChecksumLen], to[length-coding.ChecksumLen:length]
	if f.Scheme.Checksum(uint64(f.row.File), stripe, f.Shard, block) != [coding.ChecksumLen]byte(sum) {
		return ErrDamaged
	}
	return nil
}

// verify reads the shard and all nodes.
func (f *shardFile) verify() error {
	scheme := f.Scheme
	t := newStripe(scheme)
	defer t.free()
	f.expect(0, scheme.Stripes(f.row.Size))
	r := digest.Range{Digest: digest.Value(f.row.Address), Size: f.row.Size, Last: digest.Groups(f.row.Size) - 1}
	ok, err := r.Verify(f.readNode, func(i uint64, valid func([]byte) bool) error {
		stripe, at := i/uint64(scheme.Data), int(i%uint64(scheme.Data))
		isData := scheme.IsData(f.Shard)
		if isData && at != f.Shard || !isData && at != 0 {
			return nil
		}
		_, length := scheme.At(f.row.Size, stripe, f.Shard)
		part := t.memory[:length]
		if err := f.read(stripe, part); err != nil {
			return err
		}
		if isData && !valid(part) {
			return ErrDamaged
		}
		return nil
	})
	if err == nil && !ok {
		err = ErrDamaged
	}
	return err
}

// expect announces that some stripes will be read in order.
func (f *shardFile) expect(first, end uint64) {
	if s, ok := f.data.(provider.Sequential); ok {
		from, _ := f.Scheme.At(f.row.Size, first, f.Shard)
		to, length := f.Scheme.At(f.row.Size, end-1, f.Shard)
		s.Expect(from, to+uint64(length))
	}
}
