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

// MaxPage is the largest number of items in a page.
const MaxPage = 1000

// ListOptions selects a part of a listing.
type ListOptions struct {
	Limit  int   // of items; 0: all
	Page   int   // items of one request, at most MaxPage; 0: 100, or Limit
	MinSeq int64 // the response includes at least this movement; 0: no condition
}

// The items.
type (
	Entry struct {
		wire.Entry
		RawResponse
	}
	Hold struct {
		wire.Hold
		RawResponse
	}
	Account struct {
		wire.AccountView
		RawResponse
	}
	Asset struct {
		wire.AssetView
		RawResponse
	}
	Key struct {
		wire.Key
		RawResponse
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

// Entries returns the entries of an account after a seq, oldest first, page by page. An error is
// the last item. The caller can continue after the Seq of the last entry.
func (c *Client) Entries(ctx context.Context, account string, after int64, l ListOptions) iter.Seq2[Entry, error] {
	return pages(ctx, c, l, listing[Entry]{items: "entries", next: "next_after_seq", read: parseEntry,
		ask: func(from string, n int) (*http.Request, error) {
			start := after
			if from != "" {
				start, _ = strconv.ParseInt(from, 10, 64) // it was formatted from a number
			}
			return wire.NewEntriesRequest(c.base, account, &wire.EntriesParams{AfterSeq: optional(start), Limit: &n, MinSeq: optional(l.MinSeq)})
		}})
}

// Holds returns the holds of an account, oldest first: those in a state, or all if it is empty.
func (c *Client) Holds(ctx context.Context, account, state string, l ListOptions) iter.Seq2[Hold, error] {
	return pages(ctx, c, l, listing[Hold]{items: "holds", next: "next_cursor", read: parseHold,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewHoldsRequest(c.base, &wire.HoldsParams{Account: account, State: optional(wire.HoldState(state)),
				Cursor: optional(from), Limit: &n, MinSeq: optional(l.MinSeq)})
		}})
}

// Accounts returns the accounts whose names begin with prefix, in order.
func (c *Client) Accounts(ctx context.Context, prefix string, l ListOptions) iter.Seq2[Account, error] {
	return pages(ctx, c, l, listing[Account]{items: "accounts", next: "next_cursor", read: parseAccount,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewAccountsRequest(c.base, &wire.AccountsParams{Prefix: optional(prefix), Cursor: optional(from), Limit: &n, MinSeq: optional(l.MinSeq)})
		}})
}

// Assets returns the assets whose names begin with prefix, in order.
func (c *Client) Assets(ctx context.Context, prefix string, l ListOptions) iter.Seq2[Asset, error] {
	return pages(ctx, c, l, listing[Asset]{items: "assets", next: "next_cursor", read: parseAsset,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewAssetsRequest(c.base, &wire.AssetsParams{Prefix: optional(prefix), Cursor: optional(from), Limit: &n, MinSeq: optional(l.MinSeq)})
		}})
}

// Keys returns the API keys of a tenant without their secrets. If tenant is empty, it is the
// caller's.
func (c *Client) Keys(ctx context.Context, tenant string, l ListOptions) iter.Seq2[Key, error] {
	return pages(ctx, c, l, listing[Key]{items: "keys", next: "next_cursor", read: parseKey,
		ask: func(from string, n int) (*http.Request, error) {
			return wire.NewKeysRequest(c.base, &wire.KeysParams{Tenant: optional(tenant), Cursor: optional(from), Limit: &n})
		}})
}

// A listing is a paginated list.
type listing[T any] struct {
	items, next string // the members of a page with its items and with the start of the next page
	ask         func(from string, n int) (*http.Request, error)
	read        func(raw []byte) (T, error)
}

// pages yields the items of a listing.
func pages[T any](ctx context.Context, c *Client, l ListOptions, b listing[T]) iter.Seq2[T, error] {
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
				err = fmt.Errorf("%w: a page is its own next one", ErrWrongNode)
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

// page returns the number of items to request.
func (l ListOptions) page(left int) int {
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

// page requests one page.
func (b *listing[T]) page(ctx context.Context, c *Client, from string, n int) (all []jsontext.Value, next string, err error) {
	raw, err := c.get(ctx, func() (*http.Request, error) { return b.ask(from, n) })
	if err != nil {
		return nil, "", err
	}
	var members map[string]jsontext.Value
	if err := parse(raw, &members); err != nil {
		return nil, "", err
	}
	if err := parse(members[b.items], &all); err != nil {
		return nil, "", err
	}
	switch at := members[b.next]; {
	case at.Kind() == '"':
		err = json.Unmarshal(at, &next)
	case at != nil:
		next = string(at)
	}
	return all, next, err
}
