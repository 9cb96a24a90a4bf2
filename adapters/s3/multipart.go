package s3

import (
	"crypto/md5"
	"encoding/xml"
	"errors"
	"net/http"
	"strconv"

	"macronode/adapters/checksum"
	"macronode/adapters/objectio"
	"macronode/adapters/objectstore"
	"macronode/core/event"
	"macronode/core/storage"
)

type createResult struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

// createUpload begins an upload in parts.
func createUpload(c *call) error {
	if _, err := storage.ParseAddress(c.target.key); err == nil {
		return errArgument.saying(storage.ErrName.Error()) // the native interface has such uploads
	}
	meta, err := readMeta(c.r.Header)
	if err != nil {
		return err
	}
	if meta.checksum, err = uploadChecksum(c.r.Header); err != nil {
		return err
	}
	encoded, err := encodeMeta(&meta)
	if err != nil {
		return err
	}
	reply, err := c.execute(&storage.BeginUpload{Header: c.Head(), Bucket: c.bucket, Name: c.name, Meta: encoded})
	if err != nil {
		return err
	}
	if err := c.answer(reply, errInternal); err != nil {
		return err
	}
	if of := meta.checksum; of.algorithm != checksum.None {
		c.Header().Set(checksum.AlgorithmHeader, of.algorithm.String())
		c.Header().Set(checksum.TypeHeader, of.kind.String())
	}
	return c.send(createResult{Bucket: c.target.bucket, Key: c.target.key, UploadID: storage.UploadID(reply.Position).String()})
}

// upload returns the upload that a request names.
func (c *call) upload() (id storage.UploadID, u storage.Upload, err error) {
	if err := c.requireBucket(); err != nil {
		return id, u, err
	}
	text := c.param("uploadId")
	id, err = storage.ParseUploadID(text)
	if err != nil {
		return id, u, errNoUpload.with("UploadId", text)
	}
	u, ok := c.Rows.Upload(c.tenant(), c.bucket.ID, c.name.ID, id)
	if !ok {
		return id, u, errNoUpload.with("UploadId", text)
	}
	return id, u, nil
}

// part returns the upload and the number of the part that a request names. replaces reports that it has a part with
// the number.
func (c *call) uploadedPart() (id storage.UploadID, number uint16, replaces bool, err error) {
	text := c.query["partNumber"]
	if len(text) == 0 || c.param("uploadId") == "" {
		return id, 0, false, errRequest.saying("A part has a partNumber and an uploadId.")
	}
	n, err := strconv.ParseUint(text[0], 10, 16)
	if err != nil || n < 1 || n > storage.MaxPart {
		return id, 0, false, errPartNumber.with("ArgumentName", "partNumber").with("ArgumentValue", text[0])
	}
	if id, _, err = c.upload(); err != nil {
		return id, 0, false, err
	}
	number = uint16(n)
	old := c.Rows.Parts(id, number-1, 1)
	return id, number, len(old) > 0 && old[0].Number == number, nil
}

// uploadPart stores a part from the body.
func uploadPart(c *call) error {
	id, number, replaces, err := c.uploadedPart()
	if err != nil {
		return err
	}
	in, err := c.incoming(replaces)
	if err != nil {
		return err
	}
	if of, is := c.checksumOf(id).algorithm, in.check.expected.Algorithm; of != checksum.None && is != checksum.None && is != of {
		return errRequest.saying("The upload has another checksum algorithm than the part.").with("ChecksumAlgorithm", of.String())
	}
	var tag storage.ETag
	reply, err := c.store(in.receive, func(s stored) (event.Reply, error) {
		tag.MD5 = in.check.digest()
		return c.execute(c.partOf(id, number, s, tag))
	})
	if err != nil {
		return err
	}
	if err := c.answer(reply, errNoUpload); err != nil {
		return err
	}
	c.Header()["Etag"] = []string{quote(etagText(tag, storage.Address{}))}
	if sum := in.check.stored(); sum.sum != "" {
		c.Header().Set(sum.algorithm.Header(), sum.text(0))
	}
	return c.empty(http.StatusOK)
}

func (c *call) partOf(id storage.UploadID, number uint16, s stored, tag storage.ETag) *storage.PutPart {
	return &storage.PutPart{Header: c.Head(), Bucket: c.bucket, Name: c.name, Upload: id, Number: number, Address: s.address, Size: s.size,
		File: s.file, Replace: s.replace, ETag: tag}
}

type copyPartResult struct {
	XMLName      xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CopyPartResult"`
	LastModified string
	ETag         string
}

// uploadPartCopy makes a part of an object, or of a range of it.
func uploadPartCopy(c *call) error {
	source, err := copySource(c.r.Header["X-Amz-Copy-Source"][0])
	if err != nil {
		return err
	}
	id, number, replaces, err := c.uploadedPart()
	if err != nil {
		return err
	}
	f, content, err := c.open(source)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := c.checkSource(&f); err != nil {
		return err
	}
	part, err := sourceRange(first(c.r.Header["X-Amz-Copy-Source-Range"]), f.row.Size)
	if err != nil {
		return err
	}
	if !replaces {
		if _, left := c.Rows.Usage(c.tenant(), c.bucket.ID); part.Length > left {
			return c.quotaExceeded(part.Length)
		}
	}
	var tag storage.ETag
	var reply event.Reply
	if part.Length == f.row.Size {
		reply, err = c.sharePart(id, number, source, &f, content, &tag)
	} else {
		reply, err = c.copyPart(id, number, &f, content, part, &tag)
	}
	if err != nil {
		return err
	}
	if err := c.answer(reply, errNoUpload); err != nil {
		return err
	}
	at := stamp(c.storedAt(reply))
	if row := c.Rows.Parts(id, number-1, 1); len(row) > 0 && row[0].Number == number {
		at = stamp(row[0].At)
	}
	return c.send(copyPartResult{LastModified: at, ETag: quote(etagText(tag, storage.Address{}))})
}

// sourceRange reads bytes=FIRST-LAST. Both must lie within the source.
func sourceRange(text string, size uint64) (objectio.Range, error) {
	if text == "" {
		return objectio.Range{Length: size}, nil
	}
	begin, last, ok := objectio.ParseRange(text, size)
	if !ok || last == 1<<64-1 {
		return objectio.Range{}, errArgument.saying("The range of the source has the form bytes=FIRST-LAST.").with("ArgumentName", "x-amz-copy-source-range")
	}
	if last >= size {
		return objectio.Range{}, errArgument.saying("The range ends behind the end of the source.").with("ArgumentName", "x-amz-copy-source-range").
			with("ActualObjectSize", strconv.FormatUint(size, 10))
	}
	return objectio.Range{Off: begin, Length: last - begin + 1, Partial: true}, nil
}

// sharePart makes a part of a whole object. Its content is not copied; it is read if its MD5 digest is not known.
func (c *call) sharePart(id storage.UploadID, number uint16, source target, f *found, content *objectstore.Object, tag *storage.ETag) (event.Reply, error) {
	tag.MD5 = f.details.ETag.MD5
	if f.details.ETag.Parts > 0 || f.details.ETag == (storage.ETag{}) {
		sum := md5.New()
		if err := c.readRange(f.entry.Address, content, objectio.Range{Length: f.row.Size}, func(b []byte) error { _, err := sum.Write(b); return err }); err != nil {
			return event.Reply{}, err
		}
		sum.Sum(tag.MD5[:0])
	}
	reply, err := c.execute(c.partOf(id, number, stored{address: f.entry.Address, size: f.row.Size}, *tag))
	if _, _, gone := c.upload(); reply.Problem != event.NotFound || gone != nil {
		return reply, err
	}
	if _, deleted := c.find(source); deleted != nil {
		return reply, deleted
	}
	return reply, errUnavailable // the source was replaced meanwhile
}

// copyPart makes a part of a range of an object.
func (c *call) copyPart(id storage.UploadID, number uint16, f *found, content *objectstore.Object, part objectio.Range, tag *storage.ETag) (event.Reply, error) {
	sum := md5.New()
	return c.store(func(up *objectstore.Upload) error {
		up.Expect(part.Length)
		return c.readRange(f.entry.Address, content, part, func(b []byte) error {
			_, _ = sum.Write(b)
			if _, err := up.Write(b); err != nil {
				return &objectio.WriteError{Err: err}
			}
			return nil
		})
	}, func(s stored) (event.Reply, error) {
		sum.Sum(tag.MD5[:0])
		return c.execute(c.partOf(id, number, s, *tag))
	})
}

// readRange reads a part of an object for another one. A failure of the content is an answer; other errors are those of use.
func (c *call) readRange(a storage.Address, content *objectstore.Object, part objectio.Range, use func([]byte) error) error {
	var used error
	err := content.WriteRange(part.Off, part.Length, func(b []byte) error {
		if used = c.r.Context().Err(); used == nil {
			used = use(b)
		}
		return used
	})
	switch w, failed := errors.AsType[*objectio.WriteError](used); {
	case failed:
		return c.uploadError(w)
	case used != nil:
		return used
	case err != nil:
		return c.damaged(a, err)
	}
	return nil
}

// abortUpload ends an upload without an object.
func abortUpload(c *call) error {
	id, _, err := c.upload()
	if err != nil {
		return err
	}
	reply, err := c.execute(&storage.AbortUpload{Header: c.Head(), Bucket: c.bucket, Name: c.name, Upload: id})
	if err != nil {
		return err
	}
	if err := c.answer(reply, errNoUpload); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}
