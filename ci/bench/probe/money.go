package main

import (
	"fmt"
	"strconv"
	"time"

	"macronode/adapters/fs"
	"macronode/adapters/journalfile"
	"macronode/core/event"
	"macronode/core/idem"
	"macronode/core/ledger"
	"macronode/core/record"
	"macronode/core/state"
	"macronode/core/words"
)

const (
	asset     = "EUR/2"
	grant     = 1_000_000_000 // minor units for each account
	maxBatch  = 512           // frames to a sync while a journal is filled
	maxWindow = 16_000_000    // keys
)

// limits are a ledger's for so many accounts and keys.
func limits(accounts, keys int, ttl time.Duration) state.Limits {
	n, k := accounts+1024, min(keys, maxWindow)
	return state.Limits{
		Ledger: ledger.Limits{Accounts: n, Holdings: n, Assets: 16, Tenants: 16, TenantAccounts: n, TenantHoldings: n, TenantAssets: 16,
			Amount: words.Units(1e18), Day: words.Amount{Hi: 1 << 40}, IssueDay: words.Amount{Hi: 1 << 40}},
		Idem: idem.Limits{Keys: k, Share: k, Tenants: 16, TTL: ttl},
		Keys: 16,
	}
}

// account writes the name of one.
func account(to []byte, n int) []byte {
	to = append(to, "acct:00000000"...)
	for at := len(to) - 1; n > 0; at-- {
		to[at] += byte(n % 10)
		n /= 10
	}
	return to
}

// fill writes frames as fast as it can: an issue to each account first, then
// transfers from each to the next.
func fill(j *journalfile.Journal, st *state.State, accounts, frames int) error {
	var arena, scratch, from, to, key []byte
	var batch []event.Frame
	var nonce = make([]words.Nonce, accounts)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if _, err := j.Write(arena, batch); err != nil {
			return err
		}
		arena, batch = arena[:0], batch[:0]
		_, err := j.Sync()
		return err
	}
	for i := range frames {
		at := i % accounts
		r := event.Request{Op: event.Issue, Tenant: words.DefaultTenant, Amount: words.Units(grant)}
		from, to = account(from[:0], at), account(to[:0], (at+1)%accounts)
		r.To.Text = from
		if i >= accounts {
			nonce[at]++
			r.Op, r.From.Text, r.To.Text, r.Amount, r.Nonce = event.Transfer, from, to, words.Units(7), nonce[at]
		}
		key = strconv.AppendInt(append(key[:0], "fill-"...), int64(i), 10)
		r.Key.Text, r.Asset.Text = key, []byte(asset)
		scratch = r.Seal(scratch)
		rec := record.Record{Kind: record.Moved, Op: r.Op, Tenant: r.Tenant, Key: r.Key, Asked: r.Asked,
			From: r.From, To: r.To, Asset: r.Asset, Amount: r.Amount, Nonce: r.Nonce}
		wall := words.Time(time.Now().UnixMilli())
		st.Open(st.LSN+1, max(wall, st.At))
		if why := st.Ledger.Decide(st.At, &rec); why != event.None {
			return fmt.Errorf("frame %d: %s", i, why.Code())
		}
		off := uint32(len(arena))
		arena = record.Begin(arena, st.LSN, st.At)
		var index uint16
		arena, index = record.Add(arena, off, &rec)
		batch = append(batch, event.Frame{LSN: st.LSN, Off: off, Len: uint32(len(arena)) - off})
		st.Apply(index, &rec)
		if len(batch) == maxBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// size is the bytes of all files in a directory.
func size(dir fs.FS) (bytes int64, err error) {
	names, err := dir.List()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		f, err := dir.Open(name)
		if err != nil {
			return 0, err
		}
		n, err := f.Size()
		if err != nil {
			return 0, err
		}
		bytes += n
		if err := f.Close(); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}
