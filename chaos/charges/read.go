package charges

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/big"

	"macronode/core/digest"
	"macronode/core/event"
	"macronode/core/record"
	"macronode/core/types"
)

// The kinds of the records of the accounting plane, repeated here independently of core, as are their payloads.
const (
	kindReported = iota
	kindUsage
	kindSlice
	kindMetered
	kindPaid // only in older journals
	kindLineClosed
	kindLines
	numKinds

	flagLate, flagPrepaid = 1, 2

	digestSize = 32
	lineSize   = 16 + 8 + 3*16
	eventSize  = 16 + 16 + 8
)

// Those of the storage plane that a request has caused.
const (
	kindDeleted      = 2
	kindRemoved      = 4
	kindAborted      = 10
	kindPartsRemoved = 11
)

var errPayload = errors.New("charges: a record that cannot be read")

// chargeRef begins the ref of each transfer that charges a slice.
var chargeRef = []byte("usage:")

// paymentKey begins the key of each payment of the node.
var paymentKey = []byte("flow:")

// A Row is usage of a series in a window.
type Row struct {
	Tenant            types.Tenant
	Dimension, Labels string
	From, Due         int64 // begin of the window, and when it is sealed
	Late, Prepaid     bool
	Value, Events     uint64
}

// series is r without its numbers.
func (r Row) series() Row {
	r.Value, r.Events = 0, 0
	return r
}

// A payment is a transfer of the node for usage.
type payment struct {
	key, from, to, asset string
	amount               *big.Int
}

// A lineChange is a line after a record.
type lineChange struct {
	LineKey
	units, paid, cost *big.Int
}

// A slice is sealed usage.
type slice struct {
	lsn              types.LSN
	tenant           types.Tenant
	dimension        string
	seq              uint64
	previous, digest string
	rows             []Row
}

// frame is what a frame has of usage and money.
type frame struct {
	lsn      types.LSN
	at       int64
	names    []eventName // of the events that it records
	events   []Row
	metered  []Row
	payments []payment
	charges  []payment // of slices, with their refs as keys
	list     [digestSize]byte
	early    int          // of lines, those before the report
	lines    []lineChange // a line may have several
	closed   []LineKey
	slices   []slice
	effect   effect
}

type eventName struct {
	tenant types.Tenant
	name   types.NameHash
}

// An effect is what a request has done.
type effect uint8

const (
	noEffect effect = iota
	moved           // money
	stored
	deleted
	reported
)

// service is the label that the usage of the request has.
func (e effect) service() string {
	return [...]string{"", "wallet", "storage", "storage", "accounting"}[e]
}

func number(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }

func wide(b []byte) *big.Int {
	hi := new(big.Int).SetUint64(binary.LittleEndian.Uint64(b[8:]))
	return hi.Lsh(hi, 64).Add(hi, new(big.Int).SetUint64(binary.LittleEndian.Uint64(b)))
}

// text cuts a text after its length of one byte.
func text(b []byte) (t string, rest []byte) { return string(b[1 : 1+b[0]]), b[1+b[0]:] }

// readFrame reads a frame.
func readFrame(body []byte) (f frame, err error) {
	defer func() { // a payload that is too short
		if recover() != nil {
			err = errPayload
		}
	}()
	h, rest, err := record.Open(body)
	if err != nil {
		return f, err
	}
	f.lsn, f.at = h.LSN, int64(h.At)
	var r record.Record
	for range h.Count {
		if rest, err = record.Next(rest, &r); err != nil {
			return f, err
		}
		if err := f.read(&r); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *frame) read(r *record.Record) error {
	switch r.Kind.Plane() { //nolint:exhaustive // the others have neither usage nor money
	case types.PlaneWallet:
		f.readMoney(r)
	case types.PlaneStorage:
		kind := r.Kind - record.PlaneKind(types.PlaneStorage, 0)
		switch {
		case kind == kindPartsRemoved, kind == kindAborted && number(r.Payload[32:]) == 0 && len(r.Payload) > 112 && r.Payload[112] == 0: // by the node itself
		case kind == kindDeleted, kind == kindRemoved:
			f.effect = deleted
		default:
			f.effect = stored
		}
	case types.PlaneAccounting:
		return f.readUsage(int(r.Kind-record.PlaneKind(types.PlaneAccounting, 0)), r)
	}
	return nil
}

func (f *frame) readMoney(r *record.Record) {
	transfer := func(key []byte) payment {
		amount, _ := new(big.Int).SetString(r.Amount.String(), 10)
		return payment{string(key), string(r.From.Text), string(r.To.Text), string(r.Asset.Text), amount}
	}
	if r.Kind == record.Posted && bytes.HasPrefix(r.Ref.Text, chargeRef) {
		f.charges = append(f.charges, transfer(r.Ref.Text))
	}
	switch {
	case r.Kind == record.Posted && bytes.HasPrefix(r.Key.Text, paymentKey):
		f.payments = append(f.payments, transfer(r.Key.Text))
	case bytes.HasPrefix(r.Key.Text, paymentKey), r.Kind == record.HoldExpired: // a hold of a paid object, or by the node itself
	case r.Problem == event.None && f.effect == noEffect:
		f.effect = moved
	}
}

func (f *frame) readUsage(kind int, r *record.Record) error {
	b := r.Payload
	switch kind {
	case kindReported:
		f.effect = reported
		f.early = len(f.lines)
	case kindUsage, kindMetered:
		row := Row{Tenant: r.Tenant, Late: b[0]&flagLate > 0, Prepaid: b[0]&flagPrepaid > 0, From: number(b[1:]), Due: number(b[17:])}
		row.Dimension, b = text(b[25:])
		row.Labels, b = text(b)
		if kind == kindMetered {
			row.Value, row.Events = uint64(number(b)), uint64(number(b[8:]))
			f.metered = append(f.metered, row)
			return nil
		}
		for ; len(b) > 0; b = b[eventSize:] {
			row.Value, row.Events = uint64(number(b[32:])), 1
			f.events, f.names = append(f.events, row), append(f.names, eventName{r.Tenant, types.NameHash(b[:16])})
		}
	case kindSlice:
		s, ok := readSlice(r)
		if !ok {
			return errPayload
		}
		s.lsn = f.lsn
		f.slices = append(f.slices, s)
	case kindLines:
		list := [digestSize]byte(b)
		if len(f.lines) > 0 && list != f.list {
			return errors.New("charges: a frame has lines of two price lists")
		}
		f.list = list
		for b = b[digestSize:]; len(b) > 0; b = b[lineSize:] {
			f.lines = append(f.lines, lineChange{LineKey{r.Tenant, types.NameHash(b[:16]), number(b[16:])}, wide(b[24:]), wide(b[40:]), wide(b[56:])})
		}
	case kindLineClosed:
		f.closed = append(f.closed, LineKey{r.Tenant, types.NameHash(b[:16]), number(b[16:])})
	default:
		return errPayload
	}
	return nil
}

// readSlice reads a slice; false if its digest is another one.
func readSlice(r *record.Record) (s slice, ok bool) {
	b := r.Payload
	content := append([]byte("macronode slice 1\n"), byte(r.Tenant), byte(r.Tenant>>8), byte(r.Tenant>>16), byte(r.Tenant>>24))
	end := len(b) - digestSize
	sum := digest.Sum(append(content, b[8:end]...))
	s.tenant, s.digest = r.Tenant, string(b[end:])
	row := Row{Tenant: r.Tenant, Due: number(b), Late: b[8]%2 == 0, Prepaid: b[8] > 2, From: number(b[17:])}
	s.seq, s.previous = uint64(number(b[9:])), string(b[33:65])
	s.dimension, b = text(b[65:end])
	row.Dimension = s.dimension
	for b = b[2:]; len(b) > 0; b = b[16:] {
		row.Labels, b = text(b)
		row.Value, row.Events = uint64(number(b)), uint64(number(b[8:]))
		s.rows = append(s.rows, row)
	}
	return s, s.digest == string(sum[:])
}
