package httpserver

// chunkByte handles a byte of a chunk outside its data.
func (f *framing) chunkByte(c byte) {
	if f.state == beforeSize || f.state == inSize || f.state == inExtension {
		f.chunkSizeByte(c)
		return
	}
	want := byte('\n')
	if f.state == closesChunk {
		want = '\r'
	}
	switch {
	case c != want:
		f.fail(errChunk)
	case f.state == closesChunk:
		f.state = endsChunk
	case f.state == endsChunk:
		f.state, f.left, f.digits = beforeSize, 0, 0
	case f.left > 0: // endsSize, as in the next case
		f.state = inChunk
	default:
		f.state, f.fields, f.isTrailer = beforeField, 0, true
	}
}

// chunkSizeByte handles a byte of the line before a chunk.
func (f *framing) chunkSizeByte(c byte) {
	digit, is := hexDigit(c)
	f.digits++
	switch {
	case f.state != beforeSize && c == '\r':
		f.state = endsSize
	case f.digits > maxChunkLine:
		f.fail(errChunk)
	case f.state == inExtension && (c >= ' ' && c != 0x7f || c == '\t'):
	case f.state == inSize && c == ';':
		f.state = inExtension
	case f.state == inExtension, !is, f.digits > maxChunkDigits:
		f.fail(errChunk)
	default:
		f.state, f.left = inSize, f.left<<4|uint64(digit)
	}
}

func hexDigit(c byte) (digit byte, is bool) {
	switch c = lower(c); {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
