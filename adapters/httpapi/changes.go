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
	o := jsonObject{'{'}
	o.list("changes")
	var mark event.Watermark
	for left, isMore := limit, true; isMore && left > 0; left -= PartRows {
		part := min(left, PartRows)
		err := k.readPage(limit, func() (err error) {
			var n int
			n, mark, err = k.appendChanges(&o, &after, part)
			isMore = n == part
			return err
		})
		if err != nil {
			return err
		}
	}
	o.close(']')
	o.number("next_after_seq", uint64(after))
	o.asOf(max(seen, after), mark)
	return k.send(o)
}

// appendChanges appends at most limit movements after a seq to a list, and advances the seq. It returns how many there were.
func (k *call) appendChanges(o *jsonObject, after *types.Seq, limit int) (int, event.Watermark, error) {
	found, mark, err := k.Index.Changes(k.key.Tenant, *after, limit)
	for i := 0; i < len(found) && err == nil; i++ {
		if (*o)[len(*o)-1] != '[' {
			o.close(',')
		}
		*o, err = k.change(*o, found[i])
		*after = found[i].Seq
	}
	return len(found), mark, err
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
