package main

import (
	"bytes"
	"fmt"
	"strconv"
)

var (
	accepted = []byte("HTTP/1.1 202 ")
	services = [...]string{"search", "shop", "mail", "login"}
	methods  = [...]string{"get", "post"}
)

// eventsHead returns the start of a request with events, up to its length.
func (p *Plan) eventsHead() []byte {
	return fmt.Appendf(nil, "POST /v1/usage-events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/cloudevents-batch+json",
		p.Addr, p.Key)
}

// events makes the next request of this connection: events with new ids, of eight series in turn.
func (c *conn) events() {
	c.key = strconv.AppendInt(append(c.key[:0], c.name...), int64(c.turn), 10)
	c.body = append(c.body[:0], '[')
	for i := range c.plan.Events {
		if i > 0 {
			c.body = append(c.body, ',')
		}
		c.body = append(c.body, `{"specversion":"1.0","type":"usage","source":"gateway-1","id":"`...)
		if c.plan.Random {
			c.body = append(strconv.AppendUint(c.body, c.roll(), 16), '-')
		}
		c.body = append(c.body, c.key...)
		c.body = strconv.AppendInt(append(c.body, '-'), int64(i), 10)
		c.body = append(append(c.body, `","data":{"dimension":"requests","value":1,"labels":{"service":"`...), services[i%len(services)]...)
		c.body = append(append(c.body, `","method":"`...), methods[i/len(services)%len(methods)]...)
		c.body = append(c.body, `"}}}`...)
	}
	c.body = append(c.body, ']')
	c.out = append(c.out[:0], c.head...)
	c.end()
	c.turn++
}

// wrongEvents returns why an answer does not say that all events were recorded.
func (p *Plan) wrongEvents(head, body []byte) string {
	switch {
	case !bytes.HasPrefix(head, accepted):
		return "with a refusal"
	case string(bytes.TrimSpace(body)) != fmt.Sprintf(`{"recorded":%d,"duplicate":0,"late":0}`, p.Events):
		return "as if not all events were new"
	}
	return ""
}
