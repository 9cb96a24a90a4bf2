package server

import (
	"macronode/adapters/index"
	"macronode/core/event"
	"macronode/core/types"
)

// indexViews are the index as the public API reads it.
type indexViews struct{ *index.Indexer }

// Accounts yields whole accounts: the index pages over pairs of an account and an asset.
func (v indexViews) Accounts(t types.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (m event.Watermark, err error) {
	var cursor []byte
	if len(after) > 0 {
		cursor = append(append(cursor, after...), 1) // after all of its assets
	}
	var last string
	for {
		page, mark, err := v.Indexer.Accounts(t, prefix, cursor, limit+1)
		if err != nil || len(page) == 0 {
			return mark, err
		}
		for _, h := range page {
			if string(h.Account) != last {
				if limit--; limit < 0 {
					return mark, nil
				}
				last = string(h.Account)
			}
			if !yield(h.Account, h.Asset) {
				return mark, nil
			}
		}
		cursor = page[len(page)-1].Cursor()
	}
}

func (v indexViews) Holds(t types.Tenant, account []byte, state event.HoldOutcome, any bool, after types.TxID, limit int, now types.Time) (
	list []event.HoldView, next types.TxID, m event.Watermark, err error) {
	want := index.States(0)
	if !any {
		want = index.In(state)
	}
	return v.Indexer.Holds(t, account, want, after, limit, now)
}
