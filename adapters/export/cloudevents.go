package export

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
)

// cloudEvents posts each item as a structured CloudEvent 1.0. Source and id together name the item; sequence orders the items of a
// partition.
type cloudEvents struct{ *receiver }

func (c *cloudEvents) Deliver(ctx context.Context, item *Item) Result {
	header, err := c.secret.bearer()
	if err != nil {
		return retryable("%v", err)
	}
	header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
	return c.send(ctx, http.MethodPost, c.url, header, cloudEvent(item))
}

// subjectOf returns the tenant of an item, and the dimension of usage.
func subjectOf(item *Item) string {
	if item.Stream == Usage {
		return item.Tenant + "/" + item.Dimension
	}
	return item.Tenant
}

// laneOf returns the name of the lane of an item.
func laneOf(item *Item) string { return item.Stream + "/" + subjectOf(item) }

func cloudEvent(item *Item) []byte {
	b := []byte(`{"specversion":"1.0"`)
	for _, of := range [...][2]string{
		{"id", item.ID}, {"source", item.Source}, {"type", itemType(item)}, {"subject", subjectOf(item)}, {"time", stamp(item.Time)},
		{"partitionkey", laneOf(item)}, {"sequence", fmt.Sprintf("%020d", item.Seq)}, {"datacontenttype", "application/json"},
	} {
		b = append(append(append(b, `,"`...), of[0]...), `":`...)
		b, _ = jsontext.AppendQuote(b, of[1]) // all of them are ASCII
	}
	return append(append(append(b, `,"data":`...), item.Body...), '}')
}
