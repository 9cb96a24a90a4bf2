package httpapi

import (
	"macronode/core/accounting"
	"macronode/core/types"
)

// readPlainEvents reads the events of a body in one pass, if each is plain: attributes and data of this API, without
// escapes, other characters than ASCII, extension attributes and errors. If it returns false, in is unchanged, and
// the body is to be read with the JSON decoder, which names what is wrong.
func readPlainEvents(kind string, body []byte, now types.Time, in *accounting.RecordEvents) bool {
	p := plainReader{body: body, text: string(body)}
	all := in.Events
	for more := kind == structuredType || p.take('['); more; {
		e, ok := p.event(now)
		if e.Place = uint16(len(all)); !ok || len(all) == accounting.MaxEvents {
			return false
		}
		all = append(all, e)
		more = kind == batchType && p.take(',')
	}
	if kind == batchType && !p.take(']') {
		return false
	}
	if p.space(); p.at < len(body) || len(all) == 0 {
		return false
	}
	in.Events = all
	return true
}

// A plainReader reads plain events. Each of its functions returns false if what follows is something else.
type plainReader struct {
	body   []byte
	text   string // of body: strings of events are parts of it
	at     int
	labels []accounting.Label // room of the labels of an event
}

// event reads an event.
func (p *plainReader) event(now types.Time) (e accounting.Event, ok bool) {
	var c cloudEvent
	var at, dimension, value string
	attributes := [...]struct {
		name string
		to   *string
	}{{"specversion", &c.SpecVersion}, {"id", &c.ID}, {"source", &c.Source}, {"type", &c.Type}, {"time", &at}, {"subject", &c.Subject}, {"datacontenttype", &c.DataContentType}, {"dataschema", &c.DataSchema}, {"data", nil}}
	var seen uint
	if !p.members(func(name string) bool {
		for i := range attributes {
			a := &attributes[i]
			switch {
			case a.name != name:
				continue
			case seen&(1<<i) != 0:
				return false
			}
			seen |= 1 << i
			if a.to != nil {
				if *a.to, ok = p.string(); a.to == &at {
					c.Time = &at
				}
				return ok
			}
			p.space()
			from := p.at
			dimension, value, ok = p.data()
			c.Data = p.body[from:p.at]
			return ok
		}
		return false
	}) {
		return e, false
	}
	if e, err := newEvent(&c, now); err == nil && setUsage(&e, c.Subject, dimension, value, p.labels) == nil {
		return e, true
	}
	return e, false
}

// data reads the data of an event: the dimension, the text of the value, and p.labels.
func (p *plainReader) data() (dimension, value string, ok bool) {
	p.labels = p.labels[:0]
	const ofDimension, ofValue, ofLabels = 1, 2, 4
	seen := 0
	once := func(member int) bool {
		first := seen&member == 0
		seen |= member
		return first
	}
	ok = p.members(func(name string) (ok bool) {
		switch name {
		case "dimension":
			dimension, ok = p.string()
			return ok && once(ofDimension)
		case "value":
			value, ok = p.whole()
			return ok && once(ofValue)
		case "labels":
			return once(ofLabels) && p.members(p.label)
		default:
			return false
		}
	})
	return dimension, value, ok
}

// label reads the value of a label with a name that no label before has.
func (p *plainReader) label(name string) bool {
	for i := range p.labels {
		if p.labels[i].Name == name {
			return false
		}
	}
	value, ok := p.string()
	p.labels = append(p.labels, accounting.Label{Name: name, Value: value})
	return ok
}

// members reads an object. It calls each at the value of each member.
func (p *plainReader) members(each func(name string) bool) bool {
	if !p.take('{') {
		return false
	}
	if p.take('}') {
		return true
	}
	for {
		name, ok := p.string()
		if !ok || !p.take(':') || !each(name) {
			return false
		}
		if !p.take(',') {
			return p.take('}')
		}
	}
}

// string reads a string of printable ASCII without escapes.
func (p *plainReader) string() (s string, ok bool) {
	if !p.take('"') {
		return "", false
	}
	from := p.at
	for ; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return p.text[from : p.at-1], true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		}
	}
	return "", false
}

// whole reads digits, or a string.
func (p *plainReader) whole() (s string, ok bool) {
	if p.space(); p.at < len(p.text) && p.text[p.at] == '"' {
		return p.string()
	}
	from := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	return p.text[from:p.at], p.at > from
}

// take reads a character after white space.
func (p *plainReader) take(c byte) bool {
	if p.space(); p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// space reads white space.
func (p *plainReader) space() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t' || p.text[p.at] == '\n' || p.text[p.at] == '\r') {
		p.at++
	}
}
