package httpapi

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"macronode/core/accounting"
)

const (
	plainEvent = `{"specversion":"1.0","id":"a-1","source":"/checkout","type":"usage","time":"2026-01-02T03:04:05Z","subject":"ann","datacontenttype":"application/json","dataschema":"s","data":{"dimension":"requests","value":17,"labels":{"route":"/pay","region":"eu"}}}`
	now        = 1_700_000_000_000
)

// replaced returns plainEvent with another text in place of a part.
func replaced(old, with string) string {
	if !strings.Contains(plainEvent, old) {
		panic(old)
	}
	return strings.Replace(plainEvent, old, with, 1)
}

// plainEvents are bodies that are read without the JSON decoder, otherEvents are read with it.
func plainEvents() []string {
	return []string{
		plainEvent, " " + plainEvent + "\r\n", replaced(`:17`, ` : "17"`), replaced(`,"labels":{"route":"/pay","region":"eu"}`, ""), replaced(`"labels":{"route":"/pay","region":"eu"}`, `"labels":{}`),
		replaced(`,"time":"2026-01-02T03:04:05Z"`, ""), replaced(`{"route"`, `{"subject":"bob","route"`), replaced("T03", "t03"), replaced(":17", ":18446744073709551615"), replaced("{", "{\n\t"), replaced(",", " ,\n"),
	}
}

func otherEvents() []string {
	return []string{
		"", "{}", "[]", plainEvent + "x", plainEvent + plainEvent, replaced("a-1", `a\u002d1`), replaced("a-1", "ä"), replaced("{", `{"traceparent":"x",`), replaced("{", `{"id":"a-1",`), replaced(`"value":17`, `"value":17,"value":17`),
		replaced(`"route":"/pay"`, `"route":"/pay","route":"/pay"`), replaced("17", "017"), replaced("17", "1.7"), replaced("17", "-17"), replaced("17", "18446744073709551616"), replaced("17", "null"), replaced("17", `""`),
		replaced(`"ann"`, "null"), replaced(`"region":"eu"`, `"region":""`), replaced(`"region"`, `"planet"`), replaced("requests", "unknown"), replaced("1.0", "1.1"), replaced(`"2026`, `"26`), replaced(`,"data":`, `,"DATA":`), replaced(`"eu"}`, `"eu",}`), replaced("{", "{,"),
		replaced(`"labels":{`, `"labels":{},"labels":{`), replaced(`"value":17`, `"value":17,"unit":"x"`), replaced(`"a-1"`, `"a-1`+"\x01\""), replaced(`}}}`, `}}`),
	}
}

// TestUsualEventsArePlain: the events of usual clients are read in one pass, alone and in a batch.
func TestUsualEventsArePlain(t *testing.T) {
	for want, bodies := range map[bool][]string{true: plainEvents(), false: otherEvents()} {
		for _, body := range bodies {
			for kind, text := range map[string]string{structuredType: body, batchType: "[" + plainEvent + ", " + body + " ]"} {
				var in accounting.RecordEvents
				if got := comparePlain(t, kind, []byte(text), &in); got != want {
					t.Errorf("%s: plain: %v", text, got)
				}
				if !want && len(in.Events) > 0 {
					t.Errorf("%s: %d events of a body that is not plain", text, len(in.Events))
				}
			}
		}
	}
	for events, want := range map[int]bool{0: false, 1: true, accounting.MaxEvents: true, accounting.MaxEvents + 1: false} {
		body := "[" + strings.TrimSuffix(strings.Repeat(plainEvent+",", events), ",") + "]"
		var in accounting.RecordEvents
		if got := comparePlain(t, batchType, []byte(body), &in); got != want || want && len(in.Events) != events {
			t.Errorf("%d events: plain: %v, %d read", events, got, len(in.Events))
		}
	}
}

// comparePlain reads a body in one pass and returns whether it was plain. If so, the JSON decoder must read the same.
func comparePlain(t *testing.T, kind string, body []byte, in *accounting.RecordEvents) bool {
	t.Helper()
	if !readPlainEvents(kind, body, now, in) {
		return false
	}
	var want accounting.RecordEvents
	if err := readJSONEvents(kind, body, now, &want); err != nil || !reflect.DeepEqual(*in, want) {
		t.Errorf("%s:\n%+v in one pass\n%+v, %v by the decoder", body, in.Events, want.Events, err)
	}
	return true
}

// FuzzPlainEvents compares the two readers with any body.
func FuzzPlainEvents(f *testing.F) {
	for _, bodies := range [][]string{plainEvents(), otherEvents()} {
		for _, body := range bodies {
			f.Add(false, []byte(body))
			f.Add(true, []byte("["+body+","+body+"]"))
		}
	}
	f.Fuzz(func(t *testing.T, batch bool, body []byte) {
		kind := structuredType
		if batch {
			kind = batchType
		}
		var in accounting.RecordEvents
		comparePlain(t, kind, body, &in)
	})
}

// BenchmarkReadEvents reads a batch of 1,000 events and seals it, in one pass and by the JSON decoder.
func BenchmarkReadEvents(b *testing.B) {
	var events []string
	for i := range 1000 {
		events = append(events, replaced("a-1", fmt.Sprintf("a-%d", 7919*i%1000)))
	}
	body := []byte("[" + strings.Join(events, ",") + "]")
	for name, read := range map[string]func(in *accounting.RecordEvents) bool{
		"plain":   func(in *accounting.RecordEvents) bool { return readPlainEvents(batchType, body, now, in) },
		"decoder": func(in *accounting.RecordEvents) bool { return readJSONEvents(batchType, body, now, in) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				var in accounting.RecordEvents
				if !read(&in) || in.Seal() != nil {
					b.Fatal("the events were not read")
				}
			}
		})
	}
}
