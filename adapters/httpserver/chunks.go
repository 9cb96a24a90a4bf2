package httpserver

// chunked is a byte of a chunk that is not its data.
func (f *framing) chunked(c byte) {
	if f.at == ofSize || f.at == inSize || f.at == inExtension {
		f.sized(c)
		return
	}
	want := byte('\n')
	if f.at == closesChunk {
		want = '\r'
	}
	switch {
	case c != want:
		f.bad(errChunk)
	case f.at == closesChunk:
		f.at = endsChunk
	case f.at == endsChunk:
		f.at, f.left, f.digits = ofSize, 0, 0
	case f.left > 0: // of endsSize, as the next
		f.at = inChunk
	default:
		f.at, f.fields, f.trailing = ofField, 0, true
	}
}

// sized is a byte of the line before a chunk.
func (f *framing) sized(c byte) {
	digit, is := hexDigit(c)
	f.digits++
	switch {
	case f.at != ofSize && c == '\r':
		f.at = endsSize
	case f.digits > mostChunk:
		f.bad(errChunk)
	case f.at == inExtension && (c >= ' ' && c != 0x7f || c == '\t'):
	case f.at == inSize && c == ';':
		f.at = inExtension
	case f.at == inExtension, !is, f.digits > mostHex:
		f.bad(errChunk)
	default:
		f.at, f.left = inSize, f.left<<4|uint64(digit)
	}
}

func hexDigit(c byte) (digit byte, is bool) {
	switch c = small(c); {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	}
	return 0, false
}
