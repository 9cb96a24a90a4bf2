package s3

import (
	"encoding/xml"
	"net/http"
	"unicode/utf8"

	"macronode/core/event"
	"macronode/core/storage"
)

// deleteObject removes an object. One that does not exist is no error.
func deleteObject(c *call) error {
	if len(c.r.Header["If-Match"]) > 0 {
		return errNotImplemented.with("Header", "if-match")
	}
	if err := c.requireBucket(); err != nil {
		return err
	}
	if err := c.remove(c.target.key); err != nil {
		return err
	}
	return c.empty(http.StatusNoContent)
}

// remove removes the object with a key.
func (c *call) remove(key string) error {
	reply, err := c.execute(&storage.Delete{Header: c.Head(), Bucket: c.bucket, Name: storage.ObjectName(key)})
	if err != nil || reply.Problem == event.None || reply.Problem == event.NotFound {
		return err
	}
	return Problem(reply.Problem, "")
}

const maxDeleted = 1000 // of one request

type deleteRequest struct {
	Quiet   bool
	Objects []deleteItem `xml:"Object"`
}

type deleteItem struct {
	Key       string
	VersionID string  `xml:"VersionId"`
	ETag      *string // a condition
	Modified  *string `xml:"LastModifiedTime"`
	Size      *string
}

type deleteResult struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
	Deleted []deletedKey
	Errors  []deleteError `xml:"Error"`
}

type deletedKey struct{ Key string }

type deleteError struct{ Key, Code, Message string }

// readDeletes reads the document of DeleteObjects.
func readDeletes(b []byte) (d deleteRequest, err error) {
	if err := decodeXML(b, "Delete", &d); err != nil {
		return d, err
	}
	if len(d.Objects) == 0 || len(d.Objects) > maxDeleted {
		return d, errMalformedXML
	}
	return d, nil
}

// deleteObjects removes up to 1000 objects, one after the other.
func deleteObjects(c *call) error {
	body, err := c.readBody(maxDeleteXML, requiredCheck)
	if err != nil {
		return err
	}
	d, err := readDeletes(body)
	if err != nil {
		return err
	}
	if err := c.requireBucket(); err != nil {
		return err
	}
	var result deleteResult
	for _, item := range d.Objects {
		err := item.check()
		if err == nil {
			err = c.remove(item.Key)
		}
		switch {
		case err != nil:
			e := asError(err)
			result.Errors = append(result.Errors, deleteError{item.Key, e.Code, e.Message})
		case !d.Quiet:
			result.Deleted = append(result.Deleted, deletedKey{item.Key})
		}
	}
	return c.send(result)
}

// check returns why an item cannot be removed.
func (i *deleteItem) check() error {
	switch {
	case i.VersionID != "" && i.VersionID != "null":
		return errArgument.saying("The node keeps no versions.")
	case i.ETag != nil || i.Modified != nil || i.Size != nil:
		return errNotImplemented.saying("Conditions of a deletion are not implemented.")
	case i.Key == "" || !utf8.ValidString(i.Key):
		return errArgument.saying("The key is empty or not UTF-8.")
	case len(i.Key) > storage.MaxName:
		return errKeyTooLong
	}
	return nil
}
