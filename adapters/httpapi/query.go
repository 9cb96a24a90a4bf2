package httpapi

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strconv"

	"macronode/core/event"
	"macronode/core/types"
)

// Limits of a page.
const (
	MaxPage = 1000
	page    = 100 // where nothing is said

	PartRows = 250 // of a part of an export: what it keeps while its client reads
)

var (
	errQuery   = because(event.BadRequest, "The query has an unknown, a missing or a repeated parameter.")
	errNoQuery = because(event.BadRequest, "This resource accepts no query.")
	errPath    = because(event.BadRequest, "The path has an invalid escape.")
)

// A param is a part of a query. Its read says why a text is no value of it.
type param struct {
	name   string
	wanted bool
	read   func(string) error
}

// query reads the query: every parameter known, none twice, all there that are wanted.
func (k *call) query(known ...param) error {
	values, err := url.ParseQuery(k.r.URL.RawQuery)
	if err != nil {
		return errQuery
	}
	seen := 0
	for _, p := range known {
		said := values[p.name]
		switch {
		case len(said) == 0 && !p.wanted:
			continue
		case len(said) != 1:
			return errQuery
		}
		seen++
		if err := p.read(said[0]); err != nil {
			return wrong(err)
		}
	}
	if seen != len(values) {
		return errQuery
	}
	return nil
}

// Names in a query.
func accountParam(to *string, name string) param {
	return param{name, true, func(s string) error { *to = s; return types.CheckAccount(s) }}
}

func assetParam(to *string) param {
	return param{"asset", true, func(s string) error { *to = s; return types.CheckAsset(s) }}
}

func seqParam(to *types.Seq, name string) param {
	return param{name, false, func(s string) (err error) { *to, err = parseSeq(s, name); return err }}
}

// prefixParam is how a name begins; it may be empty.
func prefixParam(to *string, check func(string) error) param {
	return param{"prefix", false, func(s string) error {
		if *to = s; s != "" && check(s) != nil {
			return errors.New("prefix: is how no name of these begins")
		}
		return nil
	}}
}

func limitParam(to *int) param {
	*to = page
	return param{"limit", false, func(s string) error {
		n, err := number(s, MaxPage)
		if *to = int(n); err != nil || n == 0 {
			return errors.New("limit: must be 1..1000")
		}
		return nil
	}}
}

// parseSeq reads a number in its one canonical form.
func parseSeq(s, name string) (types.Seq, error) {
	n, err := number(s, types.MaxNonce)
	if err != nil {
		return 0, errors.New(name + ": wants 0..2^53-1")
	}
	return types.Seq(n), nil
}

var errNumber = errors.New("httpapi: no number")

func number(s string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > most || strconv.FormatUint(n, 10) != s {
		return 0, errNumber
	}
	return n, nil
}

// account is the one that the path names; any / in it is escaped there.
func (k *call) account() (string, error) {
	name, err := k.part()
	if err == nil && types.CheckAccount(name) != nil {
		err = wrong(types.ErrAccount)
	}
	return name, err
}

// part is the first name in the path, without escapes.
func (k *call) part() (string, error) {
	if k.r.URL.RawPath == "" {
		return k.params[0], nil // echo matched what had none left
	}
	name, err := url.PathUnescape(k.params[0])
	if err != nil {
		return "", errPath
	}
	return name, nil
}

// A listing is what a cursor goes on with. Its number is on the wire.
type listing byte

const (
	ofHolds listing = iota + 1
	ofAccounts
	ofAssets
	ofKeys
	ofObjects
)

const (
	cursorVersion = 1
	veiledVersion = 2
)

// cursor writes where the next page of l begins. A key of patterns is not to read there
// what it does not cover: its cursors are veiled, and good for this life of the node.
func (k *call) cursor(l listing, after []byte) string {
	b := []byte{cursorVersion, byte(l)}
	if k.key.Accounts.CoversAll() && k.key.Assets.CoversAll() {
		return base64.RawURLEncoding.EncodeToString(append(b, after...))
	}
	b[0] = veiledVersion
	return base64.RawURLEncoding.EncodeToString(k.veil.Seal(b, nil, after, b))
}

// behind is where a cursor of l goes on; false where it is none.
func (k *call) behind(l listing, b []byte) (after []byte, ok bool) {
	if len(b) < 3 || b[1] != byte(l) {
		return nil, false
	}
	switch b[0] {
	case cursorVersion:
		return b[2:], true
	case veiledVersion:
		after, err := k.veil.Open(nil, nil, b[2:], b[:2])
		return after, err == nil
	default:
		return nil, false
	}
}

// cursorParam reads what cursor wrote, and nothing else. Check says whether it is what
// the listing goes on with.
func (k *call) cursorParam(to *[]byte, l listing, check func([]byte) bool) param {
	return param{"cursor", false, func(s string) error {
		b, err := base64.RawURLEncoding.Strict().DecodeString(s)
		after, ok := k.behind(l, b)
		if err != nil || !ok || !check(after) {
			return errors.New("cursor: is none of this listing's")
		}
		*to = after
		return nil
	}}
}
