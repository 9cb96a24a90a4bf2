package export

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// webhook posts each item with a signature, as https://www.standardwebhooks.com specifies it: the receiver verifies the header
// webhook-signature over webhook-id, webhook-timestamp and the body, and drops an id that it has.
type webhook struct {
	*receiver
	now func() time.Time // nil: the clock of the machine
}

func (h *webhook) Deliver(ctx context.Context, item *Item) Result {
	keys, err := h.secret.keys()
	if err != nil {
		return retryable("%v", err)
	}
	now := time.Now
	if h.now != nil {
		now = h.now
	}
	at, body := strconv.FormatInt(now().Unix(), 10), webhookBody(item)
	return h.send(ctx, http.MethodPost, h.url, http.Header{
		"Content-Type":      {"application/json"},
		"Webhook-Id":        {item.ID},
		"Webhook-Timestamp": {at},
		"Webhook-Signature": {signatures(keys, item.ID, at, body)},
	}, body)
}

// webhookBody is the item with its type and time.
func webhookBody(item *Item) []byte {
	b := append([]byte(`{"type":"`), itemType(item)...)
	b = append(append(b, `","timestamp":"`...), stamp(item.Time)...)
	return append(append(append(b, `","data":`...), item.Body...), '}')
}

// signatures signs a body with each key, the first one first.
func signatures(keys [][]byte, id, at string, body []byte) string {
	all := make([]string, len(keys))
	for i, key := range keys {
		sum := hmac.New(sha256.New, key)
		_, _ = sum.Write([]byte(id + "." + at + ".")) // a hash takes everything
		_, _ = sum.Write(body)
		all[i] = "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	return strings.Join(all, " ")
}

// itemType is the type of an item for receivers.
func itemType(item *Item) string {
	if item.Stream == Usage {
		return "macronode.usage.slice"
	}
	return "macronode.wallet.movement"
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
