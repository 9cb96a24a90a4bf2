package main

import (
	"macronode/adapters/indexer"
	"macronode/core/event"
	"macronode/core/words"
)

// views are the index as the public API reads it.
type views struct{ *indexer.Indexer }

// Accounts yields whole accounts: the index pages over pairs of an account and an asset.
func (v views) Accounts(t words.Tenant, prefix, after []byte, limit int, yield func(account, asset []byte) bool) (m event.Mark, err error) {
	var cursor []byte
	if len(after) > 0 {
		cursor = append(append(cursor, after...), 1) // behind all of its assets
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

func (v views) Holds(t words.Tenant, account []byte, state event.Outcome, any bool, after words.TxID, limit int, now words.Time) (
	list []event.HoldView, next words.TxID, m event.Mark, err error) {
	want := indexer.States(0)
	if !any {
		want = indexer.In(state)
	}
	return v.Indexer.Holds(t, account, want, after, limit, now)
}
