package s3

import (
	"encoding/xml"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxKeys = 1000 // of one list
	// skipAfter is how many names of one common prefix are read before the list begins again behind them.
	skipAfter = 32
)

// number reads a number from 0 of the query. What is larger than limit is limit.
func (c *call) number(name string, normal, limit int) (int, error) {
	text, is := c.query[name]
	if !is || text[0] == "" {
		return normal, nil
	}
	n, err := strconv.Atoi(text[0])
	if err != nil || n < 0 {
		return 0, errArgument.saying("The "+name+" is not a number from 0.").with("ArgumentName", name).with("ArgumentValue", text[0])
	}
	return min(n, limit), nil
}

// A listQuery is what a request wants to list.
type listQuery struct {
	prefix, delimiter string
	from              string // the list begins here
	max               int
	encoding          string // of names in the document
	encode            encoder
	owner             bool // of each object
}

// A page is one part of a list.
type page struct {
	objects   []Listed
	prefixes  []string // common prefixes
	truncated bool
	next      string // where the list goes on
	last      string // the last name or common prefix
}

func (p *page) len() int { return len(p.objects) + len(p.prefixes) }

// listQuery reads what both versions of the list have in common.
func (c *call) listQuery() (q listQuery, err error) {
	q = listQuery{prefix: c.param("prefix"), delimiter: c.param("delimiter"), encoding: c.param("encoding-type")}
	if q.encode, err = encoding(q.encoding); err != nil {
		return q, err
	}
	if !utf8.ValidString(q.prefix) || !utf8.ValidString(q.delimiter) {
		return q, errURI
	}
	q.max, err = c.number("max-keys", maxKeys, maxKeys)
	return q, err
}

// commonPrefix returns the prefix under which a name is listed, if the delimiter follows the prefix of the list.
func commonPrefix(name, prefix, delimiter string) (string, bool) {
	if delimiter == "" {
		return "", false
	}
	at := strings.Index(name[len(prefix):], delimiter)
	if at < 0 {
		return "", false
	}
	return name[:len(prefix)+at+len(delimiter)], true
}

// successor returns the first text behind all texts that begin with prefix. It is empty if there is none.
func successor(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// sendList answers with a page.
func (c *call) sendList(q listQuery, document func(*page) listDocument) error {
	err := c.requireBucket()
	if err == nil && q.max > 0 {
		err = c.Names.Await(c.r.Context())
	}
	if err != nil {
		return err
	}
	return c.sendPage(q.max, func() (any, error) {
		p, err := c.list(q)
		return document(&p), err
	})
}

// list reads a page. Names under a common prefix are skipped: the list then begins again behind them.
func (c *call) list(q listQuery) (p page, err error) {
	if q.max == 0 {
		return p, nil
	}
	under, skipped := "", 0 // the last common prefix, and its names that were read
	for from, more := q.from, true; more; {
		more = false
		err = c.Names.Objects(c.r.Context(), c.tenant(), c.bucket.ID, q.prefix, from, func(l Listed) bool {
			common, is := commonPrefix(l.Name, q.prefix, q.delimiter)
			if is && common == under {
				if skipped++; skipped <= skipAfter {
					return true
				}
				from = successor(common)
				more = from != ""
				return false
			}
			if p.len() == q.max {
				p.truncated = true
				return false
			}
			if is {
				under, skipped = common, 0
				p.prefixes = append(p.prefixes, common)
				p.last, p.next = common, successor(common)
			} else {
				p.objects = append(p.objects, l)
				p.last, p.next = l.Name, l.Name+"\x00"
			}
			return true
		})
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

type listedObject struct {
	Key          string
	LastModified string
	ETag         string
	Size         uint64
	StorageClass string
	Owner        *owner `xml:",omitempty"`
}

type listedPrefix struct{ Prefix string }

// A listDocument is the answer of both versions.
type listDocument struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	Marker                *string `xml:",omitempty"` // version 1
	NextMarker            string  `xml:",omitempty"`
	StartAfter            string  `xml:",omitempty"` // version 2
	ContinuationToken     string  `xml:",omitempty"`
	NextContinuationToken string  `xml:",omitempty"`
	KeyCount              *int    `xml:",omitempty"`
	MaxKeys               int
	Delimiter             string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	Contents              []listedObject
	CommonPrefixes        []listedPrefix
}

// document returns what both versions have in common.
func (c *call) listDocument(q *listQuery, p *page) listDocument {
	d := listDocument{Name: c.target.bucket, Prefix: q.encode(q.prefix), MaxKeys: q.max, Delimiter: q.encode(q.delimiter), EncodingType: q.encoding, IsTruncated: p.truncated}
	owner := c.owner()
	for _, o := range p.objects {
		item := listedObject{Key: q.encode(o.Name), LastModified: stamp(o.At), ETag: quote(etagText(o.ETag, o.Address)), Size: o.Size, StorageClass: "STANDARD"}
		if q.owner {
			item.Owner = &owner
		}
		d.Contents = append(d.Contents, item)
	}
	for _, prefix := range p.prefixes {
		d.CommonPrefixes = append(d.CommonPrefixes, listedPrefix{q.encode(prefix)})
	}
	return d
}

// listObjectsV2 lists a bucket with continuation tokens.
func listObjectsV2(c *call) error {
	q, err := c.listQuery()
	if err != nil {
		return err
	}
	q.owner = c.param("fetch-owner") == "true"
	token, after := c.param("continuation-token"), c.param("start-after")
	if q.from, err = decodeToken(token); err != nil {
		return err
	}
	if token == "" && after != "" {
		q.from = after + "\x00"
	}
	return c.sendList(q, func(p *page) listDocument {
		d := c.listDocument(&q, p)
		count := p.len()
		d.KeyCount, d.StartAfter, d.ContinuationToken = &count, q.encode(after), token
		if p.truncated {
			d.NextContinuationToken = encodeToken(p.next)
		}
		return d
	})
}

// listObjects lists a bucket with markers. A marker that is a common prefix stands for all names under it.
func listObjects(c *call) error {
	q, err := c.listQuery()
	if err != nil {
		return err
	}
	q.owner = true
	marker := c.param("marker")
	if marker != "" {
		q.from = marker + "\x00"
	}
	if strings.HasPrefix(marker, q.prefix) {
		if common, is := commonPrefix(marker, q.prefix, q.delimiter); is && common == marker {
			q.from = successor(common)
		}
	}
	return c.sendList(q, func(p *page) listDocument {
		d := c.listDocument(&q, p)
		encoded := q.encode(marker)
		d.Marker = &encoded
		if p.truncated && q.delimiter != "" {
			d.NextMarker = q.encode(p.last)
		}
		return d
	})
}
