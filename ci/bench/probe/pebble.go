package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"macronode/ci/bench/sample"
	"macronode/core/digest"
	"macronode/core/types"
)

// store is the in-process comparison: a key-value store whose log commits in groups. A transfer
// looks up its key, reads three rows, and writes one batch with two balances, a nonce, and the
// key with its receipt.
type store struct {
	db       *pebble.DB
	locks    [1024]sync.Mutex // of accounts, by number
	accounts int
	callers  []caller
}

const receiptBytes = 128 // of a stored receipt, in binary

func openStore(s settings) (*store, error) {
	db, err := pebble.Open(s.dir, &pebble.Options{MemTableSize: 64 << 20, Logger: silent{}})
	if err != nil {
		return nil, fmt.Errorf("pebble: open: %w", err)
	}
	k := &store{db: db, accounts: s.accounts}
	for i := range s.callers {
		spread := max(1, min(16, s.accounts/s.callers))
		k.callers = append(k.callers, caller{first: i * spread, spread: spread, nonce: make([]types.Nonce, spread),
			dice: types.NewRand(uint64(i)), name: fmt.Sprintf("c%d-", i)})
	}
	b := db.NewBatch()
	for i := range s.accounts {
		if err := b.Set(row('b', i), number(grant), nil); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return nil, errors.Join(fmt.Errorf("pebble: fill: %w", err), db.Close())
	}
	return k, b.Close()
}

// row returns the key of an account's balance or nonce: names are digests, as in macronode.
func row(kind byte, n int) []byte {
	var name [16]byte
	id := digest.Name(account(name[:0], n))
	return append([]byte{kind}, id[:]...)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (k *store) get(key []byte) (n uint64, found bool, err error) {
	v, free, err := k.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	n = binary.BigEndian.Uint64(v)
	return n, true, free.Close()
}

// ask makes a transfer of the c-th caller. The locks of both accounts are held until the batch is
// applied; the sync is awaited without them, so that it is shared.
func (k *store) ask(c int) error {
	q := &k.callers[c]
	at := q.turn % q.spread
	payer := q.first + at
	payee := (payer + 1 + int(q.dice.Uint64n(uint64(k.accounts-1)))) % k.accounts
	q.nonce[at]++
	q.key = strconv.AppendInt(append(q.key[:0], q.name...), int64(q.turn), 10)
	q.turn++
	low, high := min(payer%len(k.locks), payee%len(k.locks)), max(payer%len(k.locks), payee%len(k.locks))
	k.locks[low].Lock()
	if high != low {
		k.locks[high].Lock()
	}
	b := k.db.NewBatch()
	err := k.transfer(b, payer, payee, uint64(q.nonce[at]), q.key)
	if err == nil {
		err = k.db.ApplyNoSyncWait(b, pebble.Sync)
	}
	if high != low {
		k.locks[high].Unlock()
	}
	k.locks[low].Unlock()
	if err == nil {
		err = b.SyncWait()
	}
	return errors.Join(err, b.Close())
}

func (k *store) transfer(b *pebble.Batch, payer, payee int, nonce uint64, key []byte) error {
	id := digest.Name(key)
	idem := append([]byte{'k'}, id[:]...)
	_, used, err := k.get(idem)
	if err != nil || used {
		return errors.Join(err, fmt.Errorf("%s: used %v", key, used))
	}
	from, to, last := row('b', payer), row('b', payee), row('n', payer)
	has, _, err1 := k.get(from)
	gets, _, err2 := k.get(to)
	before, _, err3 := k.get(last)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if has < 7 || before+1 != nonce {
		return fmt.Errorf("account %d has %d, nonce %d after %d", payer, has, nonce, before)
	}
	var receipt [receiptBytes]byte
	copy(receipt[:], key)
	return errors.Join(b.Set(from, number(has-7), nil), b.Set(to, number(gets+7), nil),
		b.Set(last, number(nonce), nil), b.Set(idem, receipt[:], nil))
}

func measurePebble(s settings, sp span) (r sample.Sample, err error) {
	k, err := openStore(s)
	if err != nil {
		return r, err
	}
	r, err = drive(s.callers, sp, k.ask)
	return r, errors.Join(err, k.db.Close())
}

// silent discards the log of the store.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...)) // the store cannot go on
}
