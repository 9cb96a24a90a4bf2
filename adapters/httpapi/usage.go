package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"macronode/core/accounting"
	"macronode/core/event"
	"macronode/core/types"
	"macronode/core/wallet/receipt"
)

// A UsageReader reads usage: what is not sealed from the read model, and slices from the index.
type UsageReader interface {
	// OpenUsage passes the usage of a tenant that is not sealed at the point that it returns. Texts are valid until
	// each returns.
	OpenUsage(t types.Tenant, each func(*accounting.OpenRow)) accounting.ReadPoint
	// ReportAt returns the report of a record; false if it cannot be read.
	ReportAt(p types.Position) (accounting.Report, bool)
	// AwaitFrame waits until the index has a frame. It returns false if ctx ends first, or if too many requests
	// wait.
	AwaitFrame(ctx context.Context, lsn types.LSN) bool
	// Slices passes slices in order until each returns false. Texts are valid until each returns.
	Slices(t types.Tenant, in accounting.SliceRange, each func(accounting.SealedSlice) bool) error
}

// maxUsageTime is the longest time of a query.
const maxUsageTime = 400 * 24 * time.Hour

// maxUsageScans is the number of queries that read usage at the same time. Each takes a processor, and those of many
// callers together must not keep the node from its work.
const maxUsageScans = 2

// UsageScans returns how many queries read usage, and how many may.
func (a *API) UsageScans() (depth, limit int) { return a.usageScans.depth() }

// beginUsageScan waits until the query may read usage, at most until ctx ends. endUsageScan ends that.
func (k *call) beginUsageScan(ctx context.Context) error {
	if !k.usageScans.await(ctx, k.key.Tenant) {
		if err := k.lossError(); err != nil {
			return err
		}
		return k.rejectFull("usage_scans", "As many queries of usage are in progress as may be, or as the tenant leaves to others.")
	}
	return nil
}

func (k *call) endUsageScan() { k.usageScans.give(k.key.Tenant) }

// A usageQuery selects usage.
type usageQuery struct {
	accounting.SliceRange
	by   accounting.Grouping
	kind []string
}

// queryUsage answers with sums of usage.
func queryUsage(k *call) error {
	if err := k.requireUsageScope(event.ScopeRead); err != nil {
		return err
	}
	q := usageQuery{kind: prefer(k.r.Header["Accept"], jsonType, linesType, csvType)}
	group := ""
	err := k.query(append(q.rangeParams(), param{"as_of", false, func(s string) error { return readLaterTime("as_of", s, &q.AsOf) }}, formatParam(&q.kind), param{"group", false, func(s string) (err error) {
		group = s
		if q.by, err = accounting.ParseGrouping(s); err != nil {
			err = errors.New("group: " + err.Error())
		}
		return err
	}})...)
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return err
	}
	o := jsonObject{'{'}
	o.text("tenant", k.key.Tenant.Text())
	o.stamp("from", q.From)
	o.stamp("to", q.To)
	if group != "" {
		o.texts("group", strings.Split(group, ","))
	}
	sums, point, err := k.sumUsage(&q, func(sums []accounting.Sum) {
		if q.kind[0] == jsonType[0] {
			o.sums(sums)
		}
	})
	switch {
	case err != nil:
		return err
	case q.kind[0] != jsonType[0]:
		return k.sendSums(sums, q.kind)
	case q.AsOf > 0:
		o.stamp("as_of", q.AsOf)
		return k.send(o)
	}
	o.stamp("sealed_to", point.SealedTo)
	o.stamp("as_of", point.At)
	return k.send(o)
}

// sumUsage sums the usage that q selects, and passes the sums to render before it gives its slot back. As of a time, that is what was due
// by then: the same for ever.
func (k *call) sumUsage(q *usageQuery, render func([]accounting.Sum)) (sums []accounting.Sum, point accounting.ReadPoint, err error) {
	ctx, cancel := k.waiting(k.Deadline)
	defer cancel()
	if err := k.beginUsageScan(ctx); err != nil {
		return nil, point, err
	}
	defer k.endUsageScan() // before the response is written: a slow client keeps no slot
	sum := accounting.NewSummary(q.by)
	point = k.Usage.OpenUsage(k.key.Tenant, func(r *accounting.OpenRow) {
		if q.AsOf == 0 && (len(q.Dimension) == 0 || bytes.Equal(q.Dimension, r.Dimension)) && r.Window.From >= q.From && r.Window.From < q.To {
			sum.AddOpen(r)
		}
	})
	if q.Upto = point.Upto; q.AsOf > point.AsOfLimit {
		return nil, point, problemDetail(event.BadRequest, "as_of: must be at most "+string(receipt.Stamp(nil, point.AsOfLimit))+": what is due later can still change")
	}
	err = k.eachSlice(ctx, q.SliceRange, func(s *accounting.SealedSlice) bool {
		sum.AddSlice(&s.Slice)
		return true
	})
	if err != nil {
		return nil, point, err
	}
	if sums, err = sum.Sums(); err != nil {
		return nil, point, invalid(err)
	}
	render(sums)
	return sums, point, nil
}

// rangeParams are the parameters from, to and dimension.
func (q *usageQuery) rangeParams() []param {
	return []param{timeParam("from", &q.From), timeParam("to", &q.To), {"dimension", false, func(s string) error {
		series, err := accounting.NewSeries(s, nil)
		q.Dimension = series.Dimension
		return err
	}}}
}

// timeParam is a required parameter with a time.
func timeParam(name string, to *types.Time) param {
	return param{name, true, func(s string) error { return readTime(name, s, to) }}
}

// readTime reads the time of a parameter.
func readTime(name, s string, to *types.Time) (err error) {
	if *to, err = parseTime(s); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// readLaterTime reads the time of a parameter for which 0 means that it is absent: the begin of 1970 is an error.
func readLaterTime(name, s string, to *types.Time) error {
	err := readTime(name, s, to)
	if err == nil && *to == 0 {
		err = errors.New(name + ": must be after 1970-01-01T00:00:00Z")
	}
	return err
}

// check checks the time of a query.
func (q *usageQuery) check() error {
	if q.To <= q.From || q.To > q.From.Add(maxUsageTime) {
		return problemDetail(event.BadRequest, "to: must be after from, by at most 400 days")
	}
	return nil
}

// eachSlice waits until the index has what q needs, and passes its slices until each returns false or ctx ends.
func (k *call) eachSlice(ctx context.Context, q accounting.SliceRange, each func(*accounting.SealedSlice) bool) error {
	if !k.Usage.AwaitFrame(ctx, q.Upto) {
		return cmp.Or(k.lossError(), problem(event.Unavailable))
	}
	late, n := false, 0
	err := k.Usage.Slices(k.key.Tenant, q, func(s accounting.SealedSlice) bool {
		if n++; n%256 == 0 && ctx.Err() != nil {
			late = true
			return false
		}
		return each(&s)
	})
	if err == nil && late {
		err = cmp.Or(k.lossError(), problemDetail(event.Timeout, "The usage could not be summed in time. Ask for a shorter time."))
	}
	return err
}

// sums adds a list of sums.
func (o *jsonObject) sums(all []accounting.Sum) {
	o.list("usage")
	for i := range all {
		o.open()
		o.sum(&all[i])
		o.close('}')
	}
	o.close(']')
}

// sum adds the members of a sum.
func (o *jsonObject) sum(s *accounting.Sum) {
	o.text("dimension", string(s.Dimension))
	if s.Window.To > 0 {
		o.stamp("window_from", s.Window.From)
		o.stamp("window_to", s.Window.To)
	}
	o.labels(s.Labels)
	o.amount("value", s.Total, false)
	o.amount("late", s.Late, false)
	o.amount("open", s.Open, false)
	if !s.Prepaid.IsZero() {
		o.amount("prepaid", s.Prepaid, false)
	}
	o.number("events", s.Events)
}

// labels adds the labels of their text; they need no escape.
func (o *jsonObject) labels(text []byte) {
	o.member("labels")
	*o = accounting.AppendLabelsJSON(*o, text)
}

// sendSums answers with one line for each sum.
func (k *call) sendSums(sums []accounting.Sum, kind []string) error {
	s := k.stream(kind)
	asCSV := kind[0] == csvType[0]
	var part jsonObject
	if asCSV {
		part = append(part, "dimension,window_from,window_to,service,region,method,route,subject,value,late,open,events\r\n"...)
	}
	for {
		rows := sums[:min(len(sums), PartRows)]
		sums = sums[len(rows):]
		isRead := s.read(func() {
			for i := range rows {
				if asCSV {
					part = appendSumCSV(part, &rows[i])
				} else {
					part = append(part, '{')
					part.sum(&rows[i])
					part = append(part, '}', '\n')
				}
			}
		})
		if !isRead {
			return errCut
		}
		if err := s.send(part); err != nil {
			return err
		}
		if part = part[:0]; len(sums) == 0 {
			return nil
		}
	}
}

// usageSlices answers with a page of slices.
func usageSlices(k *call) error {
	if err := k.requireUsageScope(event.ScopeRead); err != nil {
		return err
	}
	q, limit, cursor := usageQuery{}, 0, []byte(nil)
	var begun types.LSN // the frame of the first page, up to which all pages list
	q.To = math.MaxInt64
	params := q.rangeParams()
	for i := range params {
		params[i].isRequired = false
	}
	err := k.query(append(params, limitParam(&limit), k.cursorParam(&cursor, ofSlices, func(b []byte) bool {
		_, _, ok := readSliceCursor(b)
		return ok
	}))...)
	if err != nil {
		return err
	}
	if len(cursor) > 0 {
		q.After, begun, _ = readSliceCursor(cursor)
	}
	o, err := k.listSlices(q.SliceRange, begun, limit)
	if err != nil {
		return err
	}
	return k.send(o)
}

// listSlices returns a page of at most limit slices. If begun is not 0, it lists what that frame had sealed.
func (k *call) listSlices(q accounting.SliceRange, begun types.LSN, limit int) (o jsonObject, err error) {
	ctx, cancel := k.waiting(k.Deadline)
	defer cancel()
	if err := k.beginUsageScan(ctx); err != nil {
		return nil, err
	}
	defer k.endUsageScan() // before the response is written: a slow client keeps no slot
	point := k.Usage.OpenUsage(k.key.Tenant, func(*accounting.OpenRow) {})
	if q.Upto = point.Upto; begun > 0 {
		q.Upto = min(begun, point.Upto)
	}
	o = jsonObject{'{'}
	o.list("slices")
	n, last, more := 0, accounting.SliceCursor{}, false
	err = k.eachSlice(ctx, q, func(s *accounting.SealedSlice) bool {
		if more = n == limit || len(o) > onePageBytes; more {
			return false
		}
		n++
		last = accounting.SliceCursor{Dimension: bytes.Clone(s.Dimension), From: s.Window.From, Seq: s.Seq}
		if n > 1 {
			o.close(',')
		}
		o = s.AppendJSON(o)
		return true
	})
	if err != nil {
		return nil, err
	}
	o.close(']')
	if more {
		o.text("next_cursor", k.cursor(ofSlices, appendSliceCursor(nil, last, q.Upto)))
	}
	o.stamp("sealed_to", point.SealedTo)
	o.stamp("as_of", point.At)
	return o, nil
}

// onePageBytes bounds the bytes of a page of slices.
const onePageBytes = 1 << 20

func appendSliceCursor(b []byte, c accounting.SliceCursor, upto types.LSN) []byte {
	for _, n := range [...]uint64{uint64(upto), uint64(c.From), c.Seq} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return append(b, c.Dimension...)
}

func readSliceCursor(b []byte) (c accounting.SliceCursor, upto types.LSN, ok bool) {
	const fixed = 3 * 8
	if len(b) <= fixed || len(b) > fixed+accounting.MaxDimension {
		return c, 0, false
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	c = accounting.SliceCursor{Dimension: b[fixed:], From: types.Time(n(1)), Seq: n(2)}
	return c, types.LSN(n(0)), n(0) > 0 && n(0) <= types.MaxLSN && c.From >= 0 && c.Seq < math.MaxUint64
}

// appendSumCSV appends a line. No field needs quotes.
func appendSumCSV(b []byte, s *accounting.Sum) []byte {
	b = append(append(b, s.Dimension...), ',')
	if s.Window.To > 0 {
		b = append(receipt.Stamp(b, s.Window.From), ',')
		b = receipt.Stamp(b, s.Window.To)
	} else {
		b = append(b, ',')
	}
	given := accounting.ParseLabels(s.Labels)
	for _, name := range accounting.LabelNames() {
		b = append(b, ',')
		if len(given) > 0 && given[0].Name == name {
			b, given = append(b, given[0].Value...), given[1:]
		}
	}
	b = s.Total.Append(append(b, ','))
	b = s.Late.Append(append(b, ','))
	b = s.Open.Append(append(b, ','))
	return append(types.MinorUnits(s.Events).Append(append(b, ',')), '\r', '\n')
}
