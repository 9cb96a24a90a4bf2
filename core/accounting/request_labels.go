package accounting

import "unique"

// RequestLabels are the labels by which requests are counted, with the series of what a request counts as. Make them once for each
// route and method: then counting a request handles no text.
type RequestLabels struct {
	Service, Method, Route string // in lower case
	key                    labelKey
	bytesIn, bytesOut      Series
	requests               Series
}

// A labelKey is equal for equal labels, and is compared like a number.
type labelKey = unique.Handle[requestTexts]

type requestTexts struct{ service, method, route string }

// NewRequestLabels returns labels; nil if one of them is invalid, or missing. Requests without labels are not counted.
func NewRequestLabels(service, method, route string) *RequestLabels {
	l := &RequestLabels{Service: lower(service), Method: lower(method), Route: lower(route)}
	all := []Label{{"service", l.Service}, {"method", l.Method}, {"route", l.Route}}
	var err error
	if l.requests, err = NewSeries("requests", all); err != nil {
		return nil
	}
	text := l.requests.Labels
	l.bytesIn, l.bytesOut = identifySeries([]byte("bytes_in"), text), identifySeries([]byte("bytes_out"), text)
	l.key = unique.Make(requestTexts{l.Service, l.Method, l.Route})
	return l
}

// Text returns the labels as a Series has them.
func (l *RequestLabels) Text() []byte { return l.requests.Labels }
