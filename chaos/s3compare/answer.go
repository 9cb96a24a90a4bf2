package s3compare

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// An Answer is what is compared of a response: its parts by name.
type Answer struct {
	parts map[string]string
	raw   map[string]string // elements and headers as they were
}

// compared are the headers that are compared. Those in seen are compared only by whether they are there.
var (
	compared = []string{"Accept-Ranges", "Allow", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Range",
		"Content-Type", "Etag", "Expires", "X-Amz-Bucket-Region", "X-Amz-Checksum-Algorithm", "X-Amz-Checksum-Crc32", "X-Amz-Checksum-Crc32c",
		"X-Amz-Checksum-Crc64nvme", "X-Amz-Checksum-Sha1", "X-Amz-Checksum-Sha256", "X-Amz-Checksum-Type", "X-Amz-Copy-Source-Version-Id",
		"X-Amz-Mp-Parts-Count", "X-Amz-Storage-Class", "X-Amz-Version-Id"}
	seen = []string{"Last-Modified", "Location", "X-Amz-Request-Id"}
)

// changing are elements that differ between servers and runs.
var changing = []string{"ID", "DisplayName"}

// opaque are elements that are compared only by whether they are there.
var opaque = []string{"ContinuationToken", "CreationDate", "Initiated", "LastModified", "Location", "NextContinuationToken", "NextUploadIdMarker",
	"UploadId", "UploadIdMarker"}

// newAnswer reads a response.
func newAnswer(r *http.Response, content []byte) *Answer {
	a := &Answer{map[string]string{}, map[string]string{}}
	for name, values := range r.Header {
		a.raw[name] = values[0]
		switch {
		case slices.Contains(compared, name), strings.HasPrefix(name, "X-Amz-Meta-"):
			a.parts[name] = strings.Join(values, ",")
		case slices.Contains(seen, name):
			a.parts[name] = "present"
		}
	}
	if a.readXML(content) != nil {
		a.parts["body"] = fmt.Sprintf("%d bytes %.40q", len(content), content)
	}
	a.parts["answer"] = strings.TrimSpace(fmt.Sprint(r.StatusCode, " ", a.raw["Code"]))
	return a
}

// readXML reads a document: each element is a part. Those with the same path are one part, in their order.
func (a *Answer) readXML(content []byte) error {
	if !bytes.HasPrefix(content, []byte("<")) {
		return errors.New("not XML")
	}
	var path []string
	leaf, text := false, ""
	for d := xml.NewDecoder(bytes.NewReader(content)); ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			path, leaf, text = append(path, t.Name.Local), true, ""
		case xml.CharData:
			text += string(t)
		case xml.EndElement:
			if leaf {
				a.add(t.Name.Local, strings.Join(path, "/"), text)
			}
			path, leaf = path[:len(path)-1], false
		}
	}
}

// add adds the text of an element. Empty elements are as good as absent ones.
func (a *Answer) add(name, path, text string) {
	a.raw[name] = text
	switch {
	case text == "", slices.Contains(changing, name), strings.HasPrefix(path, "Error/"): // of an error, the code is compared
	case slices.Contains(opaque, name):
		a.parts[path] = "present"
	case a.parts[path] != "":
		a.parts[path] += " " + text
	default:
		a.parts[path] = text
	}
}

// find returns an element or a header.
func (a *Answer) find(name string) string {
	if v := a.raw[name]; v != "" {
		return v
	}
	return a.raw[http.CanonicalHeaderKey(name)]
}

// A Difference is a part of two answers that is not the same. An absent part is -.
type Difference struct{ Request, Part, Here, There string }

// Compare returns the differences of the answers to one request, by the name of the part. If the status or the error
// code differs, the rest is not compared.
func Compare(request string, here, there *Answer) (all []Difference) {
	if h, t := here.parts["answer"], there.parts["answer"]; h != t {
		return []Difference{{request, "answer", h, t}}
	}
	names := map[string]bool{}
	for _, a := range []*Answer{here, there} {
		for name := range a.parts {
			names[name] = true
		}
	}
	for name := range names {
		h, t := orAbsent(here.parts[name]), orAbsent(there.parts[name])
		if h != t {
			all = append(all, Difference{request, name, h, t})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return strings.Compare(a.Part, b.Part) })
	return all
}

func orAbsent(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
