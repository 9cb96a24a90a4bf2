package httpapi

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"macronode/core/event"
	"macronode/core/types"
)

const maxWait = 60_000 // milliseconds; most request deadlines are shorter

// changes returns the movements of the tenant: a page, as soon as there is one or the wait has ended, or a stream.
func changes(k *call) error {
	if err := k.requireScope(event.ScopeRead); err != nil {
		return err
	}
	var after types.Seq
	var limit int
	var wait time.Duration
	err := k.query(seqParam(&after, "after_seq"), limitParam(&limit), param{"wait", false, func(s string) error {
		n, err := number(s, maxWait)
		if wait = time.Duration(n) * time.Millisecond; err != nil {
			return errors.New("wait: must be 0..60000 milliseconds")
		}
		return nil
	}})
	if err == nil {
		err = k.requireUnboundedKey()
	}
	if err != nil {
		return err
	}
	stream := prefer(k.r.Header["Accept"], jsonType, eventsType)[0] == eventsType[0]
	if last := k.r.Header["Last-Event-Id"]; stream && len(last) > 0 {
		if after, err = parseSeq(strings.Join(last, ","), "Last-Event-ID"); err != nil {
			return invalid(err)
		}
	}
	seen, err := k.awaitCurrent(0)
	if err != nil {
		return err
	}
	if after > k.ReadModel.Seq(k.key.Tenant) { // the position is of another journal: a backup was restored
		return problemDetail(event.BadRequest, "The position is after the last movement of this journal.")
	}
	if stream {
		return k.streamChanges(after)
	}
	if wait > 0 && seen <= after {
		ctx, cancel := k.waiting(min(wait, k.Deadline))
		defer cancel()
		if k.Index.Await(ctx, k.key.Tenant, after+1) {
			seen, err = k.awaitSeq(0)
		}
		err = cmp.Or(k.lossError(), err)
	}
	if err != nil {
		return err
	}
	return k.page(seen, after, limit)
}

func (k *call) page(seen, after types.Seq, limit int) error {
	found, mark, err := k.Index.Changes(k.key.Tenant, after, limit)
	if err != nil {
		return err
	}
	o := jsonObject{'{'}
	o.list("changes")
	for i, c := range found {
		if i > 0 {
			o.close(',')
		}
		if o, err = k.change(o, c); err != nil {
			return err
		}
		after = c.Seq
	}
	o.close(']')
	o.number("next_after_seq", uint64(after))
	o.asOf(max(seen, after), mark)
	return k.send(o)
}

// change appends a movement. If the index has a movement that the read model cannot render, that is an error; it
// is never left out.
func (k *call) change(o jsonObject, c event.Change) (jsonObject, error) {
	grown, owner, err := k.ReadModel.Change(o, c.ID.Position())
	if err == nil && owner != k.key.Tenant {
		err = errNoRecord
	}
	return grown, err
}
