package readmodel

import (
	"macronode/core/command"
	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// Change appends the movement at p, and returns its tenant. Its errors are those of Render.
func (f *Follower) Change(to []byte, p types.Position) (change []byte, owner types.Tenant, err error) {
	s, err := f.frame(p.LSN)
	if err != nil {
		return to, 0, err
	}
	return receipt.Change(to, &s, p.Index)
}

// Asked returns the request of the record at p, as far as the record has it: an operation, or the
// operations of a batch that was done. An operation that opened a hold has its ID. Texts are
// read-only views of the frame. Its errors are those of Render.
func (f *Follower) RequestAt(p types.Position, in *event.Request) (of types.JournalID, err error) {
	s, err := f.frame(p.LSN)
	if err != nil {
		return 0, err
	}
	h, _, err := record.Open(s.Body)
	if err == nil && p.Index >= h.Count {
		err = receipt.ErrNoAnswer
	}
	if err != nil {
		return 0, err
	}
	var r record.Record
	_, rest, err := record.Seek(s.Body, p.Index)
	if err == nil {
		rest, err = record.Next(rest, &r)
	}
	if err != nil {
		return 0, err
	}
	if !r.IsOutcome() {
		return 0, receipt.ErrNoAnswer
	}
	*in = event.Request{Header: command.Header{Tenant: r.Tenant, Caller: r.Caller, Key: r.Key, Hash: r.Hash}, Item: item(&s, p.Index, &r)}
	if r.Kind != record.Batched || r.Problem != event.None {
		return s.Journal, nil
	}
	in.Atomic, in.Items = r.Atomic, make([]event.Item, r.Items)
	for i := range in.Items {
		if rest, err = record.Next(rest, &r); err != nil {
			return 0, err
		}
		in.Items[i] = item(&s, p.Index+1+uint16(i), &r)
	}
	return s.Journal, nil
}

func item(s *record.Sealed, index uint16, r *record.Record) event.Item {
	i := event.Item{Op: r.Op, From: r.From, To: r.To, Asset: r.Asset, Amount: r.Amount, Nonce: r.Nonce,
		ExpiresAt: r.ExpiresAt, Hold: r.Hold, Ref: r.Ref, Memo: r.Memo}
	if r.Kind == record.HoldOpened {
		i.Hold = types.NewTxID(s.Journal, types.Position{LSN: s.LSN, Index: index})
	}
	return i
}

// Keys returns all API keys of a tenant, including revoked ones, oldest first: at most limit,
// after the first skip.
func (f *Follower) Keys(t types.Tenant, skip, limit int) (list []event.Key) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	f.state.Keys.Each(t, func(k event.Key) bool {
		if skip--; skip < 0 && limit > 0 {
			list = append(list, k)
			limit--
		}
		return limit > 0
	})
	return list
}

// Frozen reports whether debits of an account are rejected.
func (f *Follower) Frozen(t types.Tenant, account []byte) bool {
	id := digest.Name(account)
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Wallet.Frozen(t, id)
}

// Supply returns the totals issued, burned and currently held of an asset.
func (f *Follower) Supply(t types.Tenant, asset []byte) (issued, burned, held types.Amount) {
	id := digest.Name(asset)
	f.mu.RLock()
	defer f.mu.RUnlock()
	issued, burned = f.state.Wallet.Supply(t, id)
	return issued, burned, f.state.Wallet.Held(t, id)
}

// Seq returns the last folded movement of a tenant.
func (f *Follower) Seq(t types.Tenant) types.Seq {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.state.Wallet.Seq(t)
}
