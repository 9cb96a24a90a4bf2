package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"macronode/adapters/client/wire"
)

// MaxPage is how many items the longest page has.
const MaxPage = 1000

// A List says how much of a listing is wanted.
type List struct {
	Limit   int   // at most; 0: all
	Page    int   // items that are asked for at once, at most MaxPage; 0: 100, or Limit
	AtLeast int64 // with at least this movement counted; 0: as it is
}

// What is listed.
type (
	Entry struct {
		wire.Entry
		Told
	}
	Hold struct {
		wire.Hold
		Told
	}
	Account struct {
		wire.AccountView
		Told
	}
	Asset struct {
		wire.AssetView
		Told
	}
	Key struct {
		wire.Key
		Told
	}
)

func parseEntry(raw []byte) (e Entry, err error) { e.Raw = raw; return e, parse(raw, &e.Entry) }
func parseHold(raw []byte) (h Hold, err error)   { h.Raw = raw; return h, parse(raw, &h.Hold) }
func parseAccount(raw []byte) (a Account, err error) {
	a.Raw = raw
	return a, parse(raw, &a.AccountView)
}
func parseAsset(raw []byte) (a Asset, err error) { a.Raw = raw; return a, parse(raw, &a.AssetView) }
func parseKey(raw []byte) (k Key, err error)     { k.Raw = raw; return k, parse(raw, &k.Key) }

// Entries are an account's movements after a seq, oldest first. It asks for page after
// page; an error is the last that it yields, and after its last entry's Seq it can be
// gone on with.
func (c *Client) Entries(ctx context.Context, account string, after int64, l List) iter.Seq2[Entry, error] {
	return pages(ctx, c, l, book[Entry]{items: "entries", next: "next_after_seq", read: parseEntry,
		ask: func(from string, n int) (*http.Request, error) {
			start := after
			if from != "" {
				start, _ = strconv.ParseInt(from, 10, 64) // it was a number
			}
			return wire.NewEntriesRequest(c.base, account, &wire.EntriesParams{AfterSeq: said(start), Limit: &n, MinSeq: said(l.AtLeast)})
		}})
}

// Holds are an account's holds, oldest first: those in a state, or all where it is
// empty.
func (c *Client) Holds(ctx context.Context, account, state string, l List) iter.Seq2[Hold, error] {
	return pages(ctx, c, l, book[Hold]{items: "holds", next: "next_cursor", read: parseHold,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewHoldsRequest(c.base, &wire.HoldsParams{Account: account, State: said(wire.HoldState(state)),
				Cursor: said(from), Limit: &n, MinSeq: said(l.AtLeast)})
		}})
}

// Accounts are those whose names begin with prefix, in the order of their names.
func (c *Client) Accounts(ctx context.Context, prefix string, l List) iter.Seq2[Account, error] {
	return pages(ctx, c, l, book[Account]{items: "accounts", next: "next_cursor", read: parseAccount,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewAccountsRequest(c.base, &wire.AccountsParams{Prefix: said(prefix), Cursor: said(from), Limit: &n, MinSeq: said(l.AtLeast)})
		}})
}

// Assets are those whose names begin with prefix, in the order of their names.
func (c *Client) Assets(ctx context.Context, prefix string, l List) iter.Seq2[Asset, error] {
	return pages(ctx, c, l, book[Asset]{items: "assets", next: "next_cursor", read: parseAsset,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewAssetsRequest(c.base, &wire.AssetsParams{Prefix: said(prefix), Cursor: said(from), Limit: &n, MinSeq: said(l.AtLeast)})
		}})
}

// Keys are the API keys of a tenant, without their secrets; of one's own where it is
// empty.
func (c *Client) Keys(ctx context.Context, tenant string, l List) iter.Seq2[Key, error] {
	return pages(ctx, c, l, book[Key]{items: "keys", next: "next_cursor", read: parseKey,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewKeysRequest(c.base, &wire.KeysParams{Tenant: said(tenant), Cursor: said(from), Limit: &n})
		}})
}

// A book is a listing: pages of items, one after the other.
type book[T any] struct {
	items, next string // the members of a page that have them, and where the next one begins
	ask         func(from string, n int) (*http.Request, error)
	read        func(raw []byte) (T, error)
}

// pages yields what stands in a book.
func pages[T any](ctx context.Context, c *Client, l List, b book[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for from, left := "", l.Limit; ; {
			all, next, err := b.page(ctx, c, from, l.page(left))
			for _, raw := range all {
				one, err := b.read(raw)
				if !yield(one, err) || err != nil {
					return
				}
				if left--; left == 0 {
					return
				}
			}
			if err == nil && next != "" && next == from {
				err = fmt.Errorf("%w: a page is its own next one", ErrStranger)
			}
			if err != nil {
				yield(zero, err)
			}
			if err != nil || next == "" {
				return
			}
			from = next
		}
	}
}

// page is how many items to ask for, where so many are wanted still.
func (l List) page(left int) int {
	n := l.Page
	switch {
	case n <= 0 && l.Limit > 0:
		n = l.Limit
	case n <= 0:
		n = 100
	}
	if l.Limit > 0 {
		n = min(n, left)
	}
	return min(n, MaxPage)
}

// page asks for one.
func (b *book[T]) page(ctx context.Context, c *Client, from string, n int) (all []jsontext.Value, next string, err error) {
	raw, err := c.look(ctx, func() (*http.Request, error) { return b.ask(from, n) })
	if err != nil {
		return nil, "", err
	}
	var said map[string]jsontext.Value
	if err := parse(raw, &said); err != nil {
		return nil, "", err
	}
	if err := parse(said[b.items], &all); err != nil {
		return nil, "", err
	}
	switch at := said[b.next]; {
	case at.Kind() == '"':
		err = json.Unmarshal(at, &next)
	case at != nil:
		next = string(at)
	}
	return all, next, err
}
