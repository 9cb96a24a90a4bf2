package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"macronode/core/accounting"
	"macronode/core/command"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// Media types of CloudEvents 1.0 over HTTP.
const (
	structuredType = "application/cloudevents+json"
	batchType      = "application/cloudevents-batch+json"
)

var (
	errUsageType = problemDetail(event.UnsupportedMedia, "The body must be "+structuredType+", "+batchType+", or application/json with the attributes in ce- headers; its charset is utf-8.")
	errManyItems = problemDetail(event.PayloadTooLarge, fmt.Sprintf("A request takes at most %d events.", accounting.MaxEvents))
	errValue     = errors.New("data.value: must be a whole number of at most 64 bits, as a JSON number or string")
)

// A cloudEvent has the attributes of CloudEvents 1.0. Extension attributes are ignored, whatever their value is.
type cloudEvent struct {
	SpecVersion     string         `json:"specversion"`
	ID              string         `json:"id"`
	Source          string         `json:"source"`
	Type            string         `json:"type"`
	Time            *string        `json:"time"`
	Subject         string         `json:"subject"`
	DataContentType string         `json:"datacontenttype"`
	DataSchema      string         `json:"dataschema"`
	Data            jsontext.Value `json:"data"`

	Extensions jsontext.Value `json:",embed"` // an object, or nothing
}

// usageData is the data of an event.
type usageData struct {
	Dimension string            `json:"dimension"`
	Value     jsontext.Value    `json:"value"`
	Labels    map[string]string `json:"labels"`
}

// recordUsage records the events of a body: one, or a batch.
func recordUsage(k *call) error {
	if err := k.requireUsageScope(event.ScopeMeter); err != nil {
		return err
	}
	if err := k.query(); err != nil {
		return err
	}
	in := &accounting.RecordEvents{Header: k.commandHeader()}
	if err := k.readEvents(in); err != nil {
		return err
	}
	terms := k.snapshot.Prepaid[k.key.Tenant]
	c := usageCommand(in, terms)
	if err := c.Seal(); err != nil {
		same, _ := errors.AsType[*accounting.SameIDError](err)
		return atItem(int(same.Second), problemDetail(event.EventConflict, "An earlier event of the request has the same source and id, and other content."))
	}
	var reply event.Reply
	err := k.decide(k.r.Context(), func(ctx context.Context) (r event.Reply, ok bool) {
		reply, ok = k.execute(ctx, c)
		return reply, ok
	})
	if report, ok := k.Usage.ReportAt(reply.Position); ok && err == nil {
		k.Meter.Usage(uint64(report.Recorded), uint64(report.Duplicate), uint64(report.Late))
	}
	if reply.Problem == event.UsageOverflow {
		return atItem(int(reply.Item)-1, problemDetail(event.UsageOverflow, "data.value: the usage of the window would exceed 64 bits"))
	}
	if reply.Problem == event.PrepaidExceeded && terms != nil {
		k.Meter.PrepaidRejected()
		return prepaidExceeded(terms, reply.Shortfall, "No event of the request was recorded.")
	}
	return err
}

// A sealedCommand has digests, which are computed outside of the step.
type sealedCommand interface {
	command.Command
	Seal() error
}

// usageCommand returns the command that records events, and pays for them if the tenant has terms. Its key is new each
// time: a retry has no effect because its events are duplicates.
func usageCommand(in *accounting.RecordEvents, terms *flow.Terms) sealedCommand {
	if terms == nil {
		return in
	}
	return &flow.PrepaidEvents{RecordEvents: *in, Terms: terms, Key: flow.Key(rand.Text())}
}

// prepaidExceeded returns the problem of usage that its account cannot pay, and what became of the request.
func prepaidExceeded(terms *flow.Terms, s event.Shortfall, effect string) error {
	asset := terms.Asset(s)
	return &refusal{problem: event.PrepaidExceeded, asset: asset, missing: s.Amount,
		detail: fmt.Sprintf("The available balance of %s is less than the price of the usage, by %s minor units of %s. %s", terms.Payer(), s.Amount, asset, effect)}
}

// requireUsageScope returns an error unless the key has the scope and no patterns: patterns are for accounts and
// assets.
func (k *call) requireUsageScope(scope event.Scopes) error {
	if err := k.requireScope(scope); err != nil {
		return err
	}
	if k.Usage == nil { // a node without accounting
		return problem(event.NotFound)
	}
	return k.requireUnboundedKey()
}

// readEvents reads the body in the mode that its media type names.
func (k *call) readEvents(in *accounting.RecordEvents) error {
	header := k.r.Header["Content-Type"]
	if len(header) != 1 {
		return errUsageType
	}
	kind, params, err := mime.ParseMediaType(header[0])
	if err != nil || kind != structuredType && kind != batchType && kind != jsonType[0] || !isUTF8(params) {
		return errUsageType
	}
	body := takeBuffer()
	defer giveBuffer(body)
	if err := k.readBody(body); err != nil {
		return err
	}
	now := k.Node.Status().At // of this step: the request was just admitted
	switch {
	case kind == jsonType[0]:
		return k.readBinaryEvent(*body, now, in)
	case readPlainEvents(kind, *body, now, in):
		return nil
	default:
		return readJSONEvents(kind, *body, now, in)
	}
}

// readJSONEvents reads an event or a batch.
func readJSONEvents(kind string, body []byte, now types.Time, in *accounting.RecordEvents) error {
	if kind == batchType {
		return readEventBatch(body, now, in)
	}
	var e cloudEvent
	if err := decodeEvent(body, &e); err != nil {
		return err
	}
	return addEvent(in, &e, now)
}

// readEventBatch reads an array of events, one at a time.
func readEventBatch(body []byte, now types.Time, in *accounting.RecordEvents) error {
	malformed := problemDetail(event.BadRequest, "The body must be a JSON array of events.")
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != '[' {
		return malformed
	}
	for i := 0; d.PeekKind() != ']'; i++ {
		raw, err := d.ReadValue()
		var repeated *jsontext.SyntacticError
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &repeated):
			return atItem(i, problemDetail(event.BadRequest, repeatedMember("event", pathOf(repeated.JSONPointer)[1:])))
		case err != nil:
			return atItem(i, problemDetail(event.BadRequest, "The event is malformed JSON."))
		case i == accounting.MaxEvents:
			return errManyItems
		}
		var e cloudEvent
		if err = decodeEvent(raw, &e); err == nil {
			err = addEvent(in, &e, now)
		}
		if err != nil {
			return atItem(i, err)
		}
	}
	if _, err := d.ReadToken(); err != nil || len(bytes.TrimSpace(body[d.InputOffset():])) > 0 {
		return malformed
	}
	if len(in.Events) == 0 {
		return problemDetail(event.BadRequest, "The body has no event.")
	}
	return nil
}

// readBinaryEvent reads an event whose attributes are headers and whose data is the body.
func (k *call) readBinaryEvent(body []byte, now types.Time, in *accounting.RecordEvents) error {
	var at string
	e := cloudEvent{Data: body}
	malformed := func(name, why string) error {
		return problemDetail(event.BadRequest, "ce-"+strings.ToLower(name)+": "+why)
	}
	for name, to := range map[string]*string{"Specversion": &e.SpecVersion, "Id": &e.ID, "Source": &e.Source, "Type": &e.Type, "Time": &at, "Subject": &e.Subject} {
		switch values := k.r.Header["Ce-"+name]; len(values) {
		case 0:
		case 1:
			value, err := url.PathUnescape(values[0]) // the HTTP binding of CloudEvents encodes what is not ASCII
			if err != nil || !utf8.ValidString(value) {
				return malformed(name, "is not percent-encoded UTF-8")
			}
			*to = value
		default:
			return malformed(name, "occurs more than once")
		}
	}
	if len(k.r.Header["Ce-Time"]) > 0 {
		e.Time = &at
	}
	return addEvent(in, &e, now)
}

// addEvent adds an event that arrived at a time.
func addEvent(in *accounting.RecordEvents, c *cloudEvent, now types.Time) error {
	e, err := newEvent(c, now)
	if err != nil {
		return err
	}
	e.Place = uint16(len(in.Events))
	var data usageData
	if err := decode(c.Data, &data, strict); err != nil {
		r := *refusalOf(err)
		name, _, isNamed := strings.Cut(r.detail, ": ")
		if _, isWhole := memberName(strings.Split(name, ".")); isNamed && isWhole {
			r.detail = "data." + r.detail
		} else {
			r.detail = "data: " + r.detail
		}
		return &r
	}
	value := string(data.Value)
	if data.Value.Kind() == '"' {
		value = strings.Trim(value, `"`)
	}
	labels := make([]accounting.Label, 0, len(data.Labels)+1)
	for name, value := range data.Labels {
		labels = append(labels, accounting.Label{Name: name, Value: value})
	}
	if err := setUsage(&e, c.Subject, data.Dimension, value, labels); err != nil {
		return err
	}
	in.Events = append(in.Events, e)
	return nil
}

// newEvent returns an event with the attributes of c, which arrived at a time.
func newEvent(c *cloudEvent, now types.Time) (e accounting.Event, err error) {
	if err := checkAttributes(c); err != nil {
		return e, err
	}
	e = accounting.Event{Source: c.Source, ID: c.ID, Time: now, Undated: c.Time == nil}
	if !e.Undated { // RFC 3339 permits t and z in lower case
		if e.Time, err = parseTime(strings.ToUpper(*c.Time)); err != nil || e.Time == 0 {
			return e, invalidEvent("time: must be a time after 1970 as in RFC 3339")
		}
	}
	return e, nil
}

// setUsage sets what e counts. The subject of the event is a label unless the labels have one.
func setUsage(e *accounting.Event, subject, dimension, value string, labels []accounting.Label) (err error) {
	var ok bool
	if e.Value, ok = parseValue(value); !ok {
		return invalidEvent(errValue.Error())
	}
	if subject != "" && !slices.ContainsFunc(labels, func(l accounting.Label) bool { return l.Name == "subject" }) {
		labels = append(labels, accounting.Label{Name: "subject", Value: subject})
	}
	if e.Series, err = accounting.NewSeries(dimension, labels); err != nil {
		return invalidEvent("data." + err.Error())
	}
	return nil
}

func invalidEvent(detail string) error { return problemDetail(event.EventInvalid, detail) }

// checkAttributes checks the attributes that are required, and those that have one value.
func checkAttributes(c *cloudEvent) error {
	switch {
	case c.SpecVersion != "1.0":
		return invalidEvent("specversion: must be 1.0")
	case c.ID == "" || len(c.ID) > accounting.MaxEventID:
		return invalidEvent(fmt.Sprintf("id: must have 1..%d bytes", accounting.MaxEventID))
	case c.Source == "" || len(c.Source) > accounting.MaxSource:
		return invalidEvent(fmt.Sprintf("source: must have 1..%d bytes", accounting.MaxSource))
	case c.Type == "":
		return invalidEvent("type: must not be empty")
	case c.DataContentType != "" && c.DataContentType != jsonType[0]:
		return invalidEvent("datacontenttype: must be application/json")
	case len(c.Data) == 0:
		return invalidEvent("data: is missing")
	}
	return nil
}

// parseValue reads a whole number without sign and leading zeros.
func parseValue(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && (text[0] != '0' || len(text) == 1)
}
