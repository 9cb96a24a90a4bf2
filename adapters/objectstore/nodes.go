package objectstore

import (
	"errors"
	"io"

	"macronode/adapters/fs"
	"macronode/core/digest"
)

// nodeReader reads the nodes of the hash tree of an object.
type nodeReader struct {
	*pacing
	nodes    fs.File // the file of the content if they are behind it
	nodesAt  uint64  // where they begin
	cached   []byte  // some nodes
	cachedAt uint64  // the place of the first
	lastNode uint64  // the place of the node that was read last
}

// cachedNodes is how many nodes are read at once: those above as many groups lie side by side.
const cachedNodes = 64

// readNode reads a node. If it is near the one before, it also reads those before it, which are needed next.
func (r *nodeReader) readNode(place uint64, n *[digest.NodeLen]byte) error {
	if place < r.cachedAt || place >= r.cachedAt+uint64(len(r.cached))/digest.NodeLen {
		first := place
		if max(place, r.lastNode)-min(place, r.lastNode) < cachedNodes { // else it is high in the tree, and nothing is needed beside it
			first -= min(place, cachedNodes-1)
		}
		length := int(place+1-first) * digest.NodeLen
		if cap(r.cached) < length {
			r.cached = make([]byte, length)
		}
		r.cached, r.cachedAt = r.cached[:length], first
		if err := r.wait(length); err != nil {
			r.cached = r.cached[:0]
			return err
		}
		if err := readFull(r.nodes, r.cached, r.nodesAt+first*digest.NodeLen); err != nil {
			r.cached = r.cached[:0]
			return err
		}
	}
	r.lastNode = place
	copy(n[:], r.cached[(place-r.cachedAt)*digest.NodeLen:])
	return nil
}

// pacing limits the reads of an object.
type pacing struct {
	pace  func(bytes int) error // is called before each read; nil: no limit
	paced error                 // of pace: it ended the read
}

// wait waits until some bytes may be read.
func (p *pacing) wait(bytes int) error {
	for ; p.pace != nil && p.paced == nil && bytes > 0; bytes -= digest.Group {
		p.paced = p.pace(min(bytes, digest.Group))
	}
	return p.paced
}

// readFull fills p. A file that is too short is damaged.
func readFull(f fs.File, p []byte, off uint64) error {
	n, err := f.ReadAt(p, int64(off))
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return ErrDamaged
	}
	return err
}
