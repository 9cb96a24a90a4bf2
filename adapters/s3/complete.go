package s3

import (
	"crypto/md5"
	"encoding/xml"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
	"macronode/core/types"
)

const (
	minPart     = 5 << 20 // bytes of each part but the last one
	completions = 3       // attempts, if parts are put meanwhile
	// keepAlive is the time after which a blank is sent while the parts are joined.
	keepAlive = 5 * time.Second
)

type completeRequest struct {
	Parts []listedPart `xml:"Part"`
}

// A listedPart is one that the client wants in the object.
type listedPart struct {
	Number         uint32 `xml:"PartNumber"`
	ETag           string
	checksumFields // of the part
}

// readParts reads the document of CompleteMultipartUpload.
func readParts(b []byte) (list []listedPart, err error) {
	var q completeRequest
	if err := decodeXML(b, "CompleteMultipartUpload", &q); err != nil {
		return nil, err
	}
	if len(q.Parts) == 0 || len(q.Parts) > storage.MaxPart {
		return nil, errMalformedXML
	}
	for i, p := range q.Parts {
		if p.Number < 1 || p.Number > storage.MaxPart {
			return nil, errPartNumber
		}
		if i > 0 && p.Number <= q.Parts[i-1].Number {
			return nil, errPartOrder
		}
	}
	return q.Parts, nil
}

// tagOf returns the entity tag of an object with the parts of a list. It is zero if an ETag is not an MD5 digest.
func tagOf(list []listedPart) (tag storage.ETag) {
	sum := md5.New()
	for _, p := range list {
		digest, ok := parseMD5(p.ETag)
		if !ok {
			return storage.ETag{}
		}
		sum.Write(digest[:])
	}
	sum.Sum(tag.MD5[:0])
	tag.Parts = uint16(len(list))
	return tag
}

type completeResult struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
	Location string
	Bucket   string
	Key      string
	ETag     string
	checksumFields
}

// A completion is an upload that becomes an object.
type completion struct {
	*call
	id     storage.UploadID
	list   []listedPart
	tag    storage.ETag
	match  storage.Match
	meta   Meta
	sums   *partSums
	blanks blanks

	parts    []storage.NumberedPart // those of the list
	size     uint64                 // of all of them
	revision uint32                 // of the upload, before the parts were read
}

// completeUpload joins the listed parts of an upload into one object.
func completeUpload(c *call) error {
	body, err := c.readBody(maxPartsXML, uncheckedBody) // a checksum in the headers is that of the object
	if err != nil {
		return err
	}
	list, err := readParts(body)
	if err != nil {
		return err
	}
	id, _, err := c.upload()
	if err != nil {
		return c.completedBefore(list, err)
	}
	k := &completion{call: c, id: id, list: list, tag: tagOf(list)}
	if k.match, _, err = c.match(); err != nil {
		return err
	}
	d, err := c.Rows.Details(types.Position(id))
	if err == nil {
		k.meta, err = decodeMeta(d.Meta)
	}
	if err != nil {
		return errors.Join(errInternal, err)
	}
	if k.sums, err = newPartSums(c.r.Header, k.meta.checksum, list); err != nil {
		return err
	}
	if err := k.choose(); errors.Is(err, errNoUpload) {
		return c.completedBefore(list, err)
	} else if err != nil {
		return err
	}
	k.blanks = blanks{call: c, next: c.Now().Add(keepAlive)}
	return k.blanks.finish(k.completedMeanwhile(k.run()))
}

// completedBefore answers a repeated request: the object has the parts of the list already.
func (c *call) completedBefore(list []listedPart, missing error) error {
	f, err := c.find(c.target)
	if tag := tagOf(list); err != nil || tag == (storage.ETag{}) || f.details.ETag != tag {
		return missing
	}
	return c.send(c.completed(&f))
}

// completedMeanwhile returns the outcome of another request that has completed the upload with the same parts.
func (k *completion) completedMeanwhile(reply event.Reply, err error) (event.Reply, error) {
	if !errors.Is(err, errNoUpload) && !errors.Is(err, errChanging) && (err != nil || reply.Problem != event.NotFound) {
		return reply, err
	}
	f, missing := k.find(k.target)
	if missing != nil || k.tag == (storage.ETag{}) || f.details.ETag != k.tag {
		return reply, err
	}
	return event.Reply{Position: f.entry.At}, nil
}

func (c *call) completed(f *found) completeResult {
	return completeResult{Location: c.location(), Bucket: c.target.bucket, Key: c.target.key, ETag: f.etag(), checksumFields: f.checksumFields()}
}

// location is where the object is.
func (c *call) location() string {
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	path := "/" + escapeKey(c.target.key)
	if _, ok := virtualHost(c.r.Host, c.Domain); !ok {
		path = "/" + c.target.bucket + path
	}
	return scheme + "://" + c.r.Host + path
}

// choose reads the parts of the list, and the revision of the upload that they belong to.
func (k *completion) choose() error {
	u, ok := k.Rows.Upload(k.tenant(), k.bucket.ID, k.name.ID, k.id)
	if !ok {
		return errNoUpload
	}
	k.revision = u.Revision // read before the parts: the node compares it
	var chosen []storage.NumberedPart
	rest := k.list
	for after := uint16(0); len(rest) > 0; {
		rows := k.Rows.Parts(k.id, after, maxKeys)
		if len(rows) == 0 {
			return k.invalidPart(rest[0])
		}
		for _, row := range rows {
			if after = row.Number; len(rest) == 0 || uint32(row.Number) < rest[0].Number {
				continue // it is not listed
			}
			if uint32(row.Number) != rest[0].Number {
				return k.invalidPart(rest[0])
			}
			if digest, ok := parseMD5(rest[0].ETag); !ok || digest != row.MD5 {
				return k.invalidPart(rest[0])
			}
			chosen, rest = append(chosen, row), rest[1:]
		}
	}
	k.parts = chosen
	return k.checkSizes()
}

func (k *completion) invalidPart(p listedPart) error {
	return errPart.with("UploadId", k.id.String()).with("PartNumber", strconv.Itoa(int(p.Number))).with("ETag", unquote(p.ETag))
}

// checkSizes checks the sizes of the parts and of the object.
func (k *completion) checkSizes() error {
	total, last := uint64(0), len(k.parts)-1
	k.meta.partSize = k.parts[0].Size
	for i, p := range k.parts {
		if i < last && p.Size < minPart {
			return errTooSmall.with("ProposedSize", strconv.FormatUint(p.Size, 10)).with("MinSizeAllowed", strconv.Itoa(minPart)).
				with("PartNumber", strconv.Itoa(int(p.Number)))
		}
		if i < last && p.Size != k.parts[0].Size {
			k.meta.partSize = 0
		}
		total += p.Size
	}
	if total > storage.MaxObject {
		return errTooLarge
	}
	if want := first(k.r.Header["X-Amz-Mp-Object-Size"]); want != "" && want != strconv.FormatUint(total, 10) {
		return errRequest.saying("The object does not have the size of x-amz-mp-object-size.")
	}
	k.size = total
	return k.reserve(total)
}

// run joins the parts and lets the node decide. If parts were put meanwhile, it reads them again.
func (k *completion) run() (event.Reply, error) {
	var reply event.Reply
	for range completions {
		parts := slices.Clone(k.parts)
		_, err := k.store(k.join, func(s stored) (_ event.Reply, err error) {
			for range completions {
				if reply, err = k.decide(s); err != nil || reply.Problem != event.InProgress {
					return reply, err
				}
				if err = k.choose(); err != nil || !slices.Equal(parts, k.parts) {
					return reply, err
				}
			}
			return reply, errChanging
		})
		if err != nil || reply.Problem != event.InProgress {
			return reply, err
		}
	}
	return reply, errChanging
}

func (k *completion) decide(s stored) (event.Reply, error) {
	meta, err := encodeMeta(&k.meta)
	if err != nil {
		return event.Reply{}, err
	}
	return k.execute(&storage.Put{Header: k.Head(), Bucket: k.bucket, Name: k.name, Address: s.address, Size: s.size, File: s.file, Replace: s.replace,
		ETag: k.tag, Meta: meta, Match: k.match, Upload: k.id, Revision: k.revision})
}

// join writes the parts into one object and verifies their checksums.
func (k *completion) join(up *objectstore.Upload) error {
	k.sums.reset()
	up.Expect(k.size)
	for i, p := range k.parts {
		if err := k.joinPart(up, p); err != nil {
			return err
		}
		if !k.sums.endPart(&k.list[i].checksumFields) {
			return k.invalidPart(k.list[i])
		}
	}
	sum, err := k.sums.finish()
	k.meta.checksum = sum
	return err
}

func (k *completion) joinPart(up *objectstore.Upload, p storage.NumberedPart) error {
	row, ok := k.Rows.StoredAs(p.Address)
	if !ok {
		return errChanging
	}
	content, err := k.openContent(p.Address, row)
	if errors.Is(err, objectio.ErrNoObject) {
		return errChanging
	}
	if err != nil {
		return err
	}
	defer content.Close()
	return k.readRange(p.Address, content, objectio.Range{Length: p.Size}, func(b []byte) error {
		k.blanks.tick()
		_, _ = k.sums.Write(b)
		if _, err := up.Write(b); err != nil {
			return &objectio.WriteError{Err: err}
		}
		return nil
	})
}

// blanks keep a connection open while parts are joined: a response that takes long begins with its status and
// blanks, and its document says whether the request failed.
type blanks struct {
	*call
	next time.Time
}

// tick sends a blank if it is time.
func (b *blanks) tick() {
	now := b.Now()
	if now.Before(b.next) {
		return
	}
	b.next = now.Add(keepAlive)
	text := " "
	if !b.begun {
		b.Header()["Content-Type"] = xmlType
		b.start(http.StatusOK)
		text = xml.Header
	}
	_, _ = b.Write([]byte(text)) // a client that has left does not end the upload
	_ = http.NewResponseController(b.Session).Flush()
}

// finish answers with the object, or with an error.
func (b *blanks) finish(reply event.Reply, err error) error {
	if err == nil {
		err = b.answer(reply, errNoUpload)
	}
	var f found
	if err == nil {
		f.details, err = b.Rows.Details(reply.Position)
	}
	if err == nil {
		f.meta, err = decodeMeta(f.details.Meta)
	}
	if !b.begun {
		if err != nil {
			return err
		}
		return b.send(b.completed(&f))
	}
	var document any = b.completed(&f)
	if err != nil {
		e := asError(err)
		b.SetError(e.Code)
		document = e.document(b.r.URL.Path, b.RequestID())
	}
	text, err := marshal(document)
	if err != nil {
		return err
	}
	_, err = b.Write(text[len(xml.Header):])
	return err
}
