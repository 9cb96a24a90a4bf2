package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"macronode/core/event"
	"macronode/core/types"
)

// The results of the functions of schema.sql.
const (
	moved = iota
	noFunds
	nonceUsed
	nonceAhead
	conflict
	again
	bundled
)

const (
	tries       = 3
	refused     = "MN001" // raised by transfer
	deadlocked  = "40P01"
	patience    = 5 * time.Second
	callMove    = "select (x).outcome, (x).replayed, (x).seq, (x).at, (x).expected from transfer($1,$2,$3,$4,$5,$6,$7,$8) x"
	callRefuse  = "select (x).outcome, (x).replayed, (x).seq, (x).at, (x).expected from refuse($1,$2,$3,$4,$5,$6,$7,$8) x"
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// desk handles transfers.
type desk struct {
	pool *pgxpool.Pool
	key  [32]byte // SHA-256 of the API key
}

func newDesk(pool *pgxpool.Pool, key string) *desk {
	return &desk{pool: pool, key: sha256.Sum256([]byte(key))}
}

func (d *desk) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/transfer", d.transfer)
	mux.HandleFunc("POST /v1/batch", d.batch)
	mux.HandleFunc("POST /v1/usage-events", d.events)
	return mux
}

// result is a row of the SQL type of that name.
type result struct {
	outcome  int16
	replayed bool
	seq      int64
	at       time.Time
	expected int64
}

// body reads the body of a request with a valid API key.
func (d *desk) body(w http.ResponseWriter, r *http.Request) (raw []byte, ok bool) {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if shown := sha256.Sum256([]byte(bearer)); subtle.ConstantTimeCompare(shown[:], d.key[:]) != 1 {
		refuse(w, event.Unauthorized, 0)
		return nil, false
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, types.MaxBody))
	if err != nil {
		refuse(w, event.PayloadTooLarge, 0)
	}
	return raw, err == nil
}

func (d *desk) transfer(w http.ResponseWriter, r *http.Request) {
	raw, ok := d.body(w, r)
	if !ok {
		return
	}
	in, err := parse(raw, r.Header.Get("Idempotency-Key"))
	if err != nil {
		refuse(w, event.BadRequest, 0)
		return
	}
	if large(in.Amount) {
		refuse(w, event.AmountLimitExceeded, 0)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	t, err := d.decide(ctx, in)
	if err != nil {
		refuse(w, event.OutcomeUnknown, 0)
		return
	}
	answer(w, in, t)
}

// large reports whether a does not fit into a bigint.
func large(a types.Amount) bool { return a.Hi > 0 || a.Lo > math.MaxInt64 }

// order is the JSON of a transfer.
type order struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Asset  string `json:"asset"`
	Amount string `json:"amount_minor"`
	Nonce  uint64 `json:"nonce"`
	Memo   string `json:"memo"`
}

func (o *order) item() (event.Item, error) {
	amount, err := types.ParseAmount(o.Amount)
	i := event.Item{Op: event.Transfer, Amount: amount, Nonce: types.Nonce(o.Nonce), Memo: []byte(o.Memo)}
	i.From.Text, i.To.Text, i.Asset.Text = []byte(o.From), []byte(o.To), []byte(o.Asset)
	return i, err
}

// parse parses a transfer as strictly as macronode.
func parse(raw []byte, key string) (*event.Request, error) {
	var body order
	if err := strictly(raw, &body); err != nil {
		return nil, err
	}
	item, err := body.item()
	if err != nil {
		return nil, err
	}
	in := &event.Request{Item: item}
	in.Key.Text = []byte(key)
	in.Seal(nil)
	return in, in.Validate()
}

// strictly parses one value without unknown members.
func strictly(raw []byte, to any) error {
	from := json.NewDecoder(bytes.NewReader(raw))
	from.DisallowUnknownFields()
	if err := from.Decode(to); err != nil {
		return err
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

// decide makes a transfer, or returns why it is rejected. Only a rolled back transaction is
// retried.
func (d *desk) decide(ctx context.Context, in *event.Request) (t result, err error) {
	for range tries {
		t, err = d.call(ctx, callMove, in)
		if is(err, refused) {
			t, err = d.call(ctx, callRefuse, in)
		}
		if err == nil && t.outcome != again || err != nil && !is(err, deadlocked) {
			return t, err
		}
	}
	return t, errors.Join(err, errors.New("no outcome"))
}

func (d *desk) call(ctx context.Context, sql string, in *event.Request) (t result, err error) {
	row := d.pool.QueryRow(ctx, sql, string(in.Key.Text), in.Hash[:], string(in.From.Text), string(in.To.Text),
		string(in.Asset.Text), int64(in.Amount.Lo), int64(in.Nonce), string(in.Memo))
	err = row.Scan(&t.outcome, &t.replayed, &t.seq, &t.at, &t.expected)
	return t, err
}

func is(err error, code string) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == code
}

func answer(w http.ResponseWriter, in *event.Request, t result) {
	if t.replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	switch t.outcome {
	case moved:
		body := receipt(make([]byte, 0, 512), in.Key.Text, &in.Item, t.seq, t.at)
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(body) // the client may be gone; the transfer is done
	case noFunds:
		refuse(w, event.InsufficientFunds, 0)
	case nonceUsed:
		refuse(w, event.NonceUsed, t.expected)
	case nonceAhead:
		refuse(w, event.NonceAhead, t.expected)
	case conflict:
		refuse(w, event.IdempotencyConflict, 0)
	}
}

// receipt depends on the stored row only, so that a replay has the same bytes.
func receipt(to, key []byte, in *event.Item, seq int64, at time.Time) []byte {
	var id [16]byte
	for i := range 8 {
		id[8+i] = byte(seq >> (56 - 8*i))
	}
	to = append(hex.AppendEncode(append(to, `{"txid":"tx_`...), id[:]), `","op":"transfer","from":"`...)
	to = append(append(append(to, in.From.Text...), `","to":"`...), in.To.Text...)
	to = append(append(append(to, `","asset":"`...), in.Asset.Text...), `","amount_minor":"`...)
	to = append(in.Amount.Append(to), `","nonce":`...)
	to = append(strconv.AppendUint(to, uint64(in.Nonce), 10), `,"idem":"`...)
	to = append(append(to, key...), `","ts":"`...)
	to = append(at.UTC().AppendFormat(to, "2006-01-02T15:04:05.000Z"), `","seq":`...)
	return append(strconv.AppendInt(to, seq, 10), '}')
}

func refuse(w http.ResponseWriter, p event.Problem, expected int64) {
	body := append([]byte(`{"code":"`), p.Code()...)
	body = strconv.AppendBool(append(body, `","retryable":`...), p.Retryable())
	if expected > 0 {
		body = strconv.AppendInt(append(body, `,"expected_nonce":`...), expected, 10)
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status())
	_, _ = w.Write(append(body, '}')) // the client may be gone
}
