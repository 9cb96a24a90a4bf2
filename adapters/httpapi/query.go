package httpapi

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"macronode/core/event"
	"macronode/core/types"
)

// Limits of a page.
const (
	MaxPage     = 1000
	defaultPage = 100 // without limit in the query

	PartRows = 250 // of a part of an export; its memory is kept while the client reads
)

var (
	errQuery   = problemDetail(event.BadRequest, "The query has an invalid escape or a semicolon.")
	errNoQuery = problemDetail(event.BadRequest, "This resource accepts no query.")
	errPath    = problemDetail(event.BadRequest, "The path has an invalid escape.")
)

// A param is a parameter of a query. Its read returns an error for an invalid value.
type param struct {
	name       string
	isRequired bool
	read       func(string) error
}

// query parses the query. Unknown, repeated and missing required parameters are errors.
func (k *call) query(known ...param) error {
	values, err := url.ParseQuery(k.r.URL.RawQuery)
	if err != nil {
		return errQuery
	}
	if err := checkKnown(values, known); err != nil {
		return err
	}
	for _, p := range known {
		given := values[p.name]
		switch {
		case len(given) > 1:
			return problemDetail(event.BadRequest, p.name+": is given more than once")
		case len(given) == 1:
			if err := p.read(given[0]); err != nil {
				return invalid(err)
			}
		case p.isRequired:
			return problemDetail(event.BadRequest, p.name+": is missing")
		}
	}
	return nil
}

// checkKnown returns an error that names the first unknown parameter, in the order of their names, and all known
// ones. A name that has other characters than parameters have is not repeated.
func checkKnown(values url.Values, known []param) error {
	isKnown := func(name string) bool {
		return slices.ContainsFunc(known, func(p param) bool { return p.name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case isKnown(name):
			continue
		case len(known) == 0:
			return errNoQuery
		}
		detail := "The query has an unknown parameter"
		if isMemberName(name) {
			detail = name + ": is no parameter of this resource"
		}
		for i, p := range known {
			detail += [...]string{"; these are: ", ", "}[min(i, 1)] + p.name
		}
		return problemDetail(event.BadRequest, detail)
	}
	return nil
}

// Parameters that are names.
func accountParam(to *string, name string) param {
	return param{name, true, func(s string) error { *to = s; return types.CheckAccount(s) }}
}

func assetParam(to *string) param {
	return param{"asset", true, func(s string) error { *to = s; return types.CheckAsset(s) }}
}

func seqParam(to *types.Seq, name string) param {
	return param{name, false, func(s string) (err error) { *to, err = parseSeq(s, name); return err }}
}

// prefixParam is the prefix of names; it may be empty.
func prefixParam(to *string, check func(string) error) param {
	return param{"prefix", false, func(s string) error {
		if *to = s; s != "" && check(s) != nil {
			return errors.New("prefix: is how no name of these begins")
		}
		return nil
	}}
}

func limitParam(to *int) param {
	*to = defaultPage
	return param{"limit", false, func(s string) error {
		n, err := number(s, MaxPage)
		if *to = int(n); err != nil || n == 0 {
			return errors.New("limit: must be 1..1000")
		}
		return nil
	}}
}

// parseSeq parses a number in its canonical form.
func parseSeq(s, name string) (types.Seq, error) {
	n, err := number(s, types.MaxNonce)
	if err != nil {
		return 0, errors.New(name + ": must be 0..2^53-1")
	}
	return types.Seq(n), nil
}

var errNumber = errors.New("httpapi: no number")

func number(s string, limit uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > limit || strconv.FormatUint(n, 10) != s {
		return 0, errNumber
	}
	return n, nil
}

// account returns the account of the path, in which / is escaped.
func (k *call) account() (string, error) {
	name, err := k.pathName()
	if err == nil && types.CheckAccount(name) != nil {
		err = invalid(types.ErrAccount)
	}
	return name, err
}

// pathName returns the first name of the path, unescaped.
func (k *call) pathName() (string, error) {
	if k.r.URL.RawPath == "" {
		return k.params[0], nil // echo matched the path without escapes
	}
	name, err := url.PathUnescape(k.params[0])
	if err != nil {
		return "", errPath
	}
	return name, nil
}

// A listing is the list that a cursor continues. Its number is part of cursors, so it must not change.
type listing byte

const (
	ofHolds listing = iota + 1
	ofAccounts
	ofAssets
	ofKeys
	ofObjects
	ofSlices
)

const (
	cursorVersion = 1
	sealedVersion = 2
)

// cursor encodes where the next page of l begins. Cursors of bounded keys are encrypted, because they may contain
// names that the key does not cover. An encrypted cursor is valid until the process ends.
func (k *call) cursor(l listing, after []byte) string {
	b := []byte{cursorVersion, byte(l)}
	if k.key.Accounts.CoversAll() && k.key.Assets.CoversAll() {
		return base64.RawURLEncoding.EncodeToString(append(b, after...))
	}
	b[0] = sealedVersion
	return base64.RawURLEncoding.EncodeToString(k.cursorCipher.Seal(b, nil, after, b))
}

// openCursor returns the position of a cursor of l; false if it is not one.
func (k *call) openCursor(l listing, b []byte) (after []byte, ok bool) {
	if len(b) < 3 || b[1] != byte(l) {
		return nil, false
	}
	switch b[0] {
	case cursorVersion:
		return b[2:], true
	case sealedVersion:
		after, err := k.cursorCipher.Open(nil, nil, b[2:], b[:2])
		return after, err == nil
	default:
		return nil, false
	}
}

// cursorParam parses a cursor of l. check validates its position.
func (k *call) cursorParam(to *[]byte, l listing, check func([]byte) bool) param {
	return param{"cursor", false, func(s string) error {
		b, err := base64.RawURLEncoding.Strict().DecodeString(s)
		after, ok := k.openCursor(l, b)
		if err != nil || !ok || !check(after) {
			return errors.New("cursor: belongs to another list")
		}
		*to = after
		return nil
	}}
}
