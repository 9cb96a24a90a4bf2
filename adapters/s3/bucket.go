package s3

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"macronode/core/event"
	"macronode/core/storage"
)

type owner struct{ ID, DisplayName string }

type bucketItem struct {
	Name         string
	CreationDate string
	BucketRegion string
}

type bucketList struct {
	XMLName           xml.Name     `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
	Owner             owner        //
	Buckets           []bucketItem `xml:"Buckets>Bucket"`
	Prefix            string       `xml:",omitempty"`
	ContinuationToken string       `xml:",omitempty"`
}

const maxBuckets = 10_000 // of one list

// listBuckets lists the buckets of the tenant by name.
func listBuckets(c *call) error {
	limit, err := c.number("max-buckets", maxBuckets, maxBuckets)
	if err != nil {
		return err
	}
	if limit == 0 {
		return errArgument.saying("The max-buckets is at least 1.")
	}
	from, err := decodeToken(c.param("continuation-token"))
	if err != nil {
		return err
	}
	all, err := c.Names.Buckets(c.r.Context(), c.tenant())
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b ListedBucket) int { return strings.Compare(a.Name, b.Name) })
	list := bucketList{Owner: c.owner(), Prefix: c.param("prefix")}
	if region := c.param("bucket-region"); region != "" && region != c.Region {
		all = nil
	}
	for _, b := range all {
		if b.Name < from || !strings.HasPrefix(b.Name, list.Prefix) {
			continue
		}
		if len(list.Buckets) == limit {
			list.ContinuationToken = encodeToken(b.Name)
			break
		}
		list.Buckets = append(list.Buckets, bucketItem{b.Name, stamp(b.At), c.Region})
	}
	return c.sendPage(len(list.Buckets), func() (any, error) { return list, nil })
}

// encodeToken returns the opaque form of where a list goes on.
func encodeToken(from string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("1" + from))
}

// decodeToken reads the form of encodeToken. No token is the begin of the list.
func decodeToken(token string) (from string, err error) {
	if token == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < 2 || b[0] != '1' {
		return "", errContinuation
	}
	return string(b[1:]), nil
}

type bucketConfiguration struct {
	LocationConstraint string
	Location           *struct{} // of a directory bucket
	Bucket             *struct{}
}

// createBucket makes a bucket.
func createBucket(c *call) error {
	var conf bucketConfiguration
	if _, err := c.readXML(maxXML, "CreateBucketConfiguration", &conf); err != nil {
		return err
	}
	switch {
	case conf.Location != nil || conf.Bucket != nil:
		return errNotImplemented
	case conf.LocationConstraint != "" && conf.LocationConstraint != c.Region:
		return errLocation
	}
	reply := c.Execute(&storage.CreateBucket{Header: c.Head(), Bucket: c.bucket})
	switch reply.Problem {
	case event.PreconditionFailed:
		return errBucketExists.with("BucketName", c.target.bucket)
	case event.CapacityExceeded:
		return errTooManyBuckets.saying(reply.Shortage.Detail())
	default:
	}
	if err := c.answer(reply, errInternal); err != nil {
		return err
	}
	c.Header()["Location"] = []string{"/" + c.target.bucket}
	return c.empty(http.StatusOK)
}

// headBucket reports whether a bucket exists.
func headBucket(c *call) error {
	if err := c.requireBucket(); err != nil {
		return err
	}
	c.Header()["X-Amz-Bucket-Region"] = []string{c.Region}
	c.Header()["Content-Type"] = xmlType
	c.start(http.StatusOK)
	return nil
}

// deleteBucket removes an empty bucket.
func deleteBucket(c *call) error {
	reply := c.Execute(&storage.DeleteBucket{Header: c.Head(), Bucket: c.bucket})
	switch reply.Problem {
	case event.None:
		return c.empty(http.StatusNoContent)
	case event.PreconditionFailed:
		return errBucketNotEmpty.with("BucketName", c.target.bucket)
	case event.NotFound:
		return errNoBucket.with("BucketName", c.target.bucket)
	default:
		return Problem(reply.Problem, "")
	}
}

type bucketLocation struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
	Region  string   `xml:",chardata"`
}

// classicRegion is the region whose name the protocol leaves out.
const classicRegion = "us-east-1"

func getBucketLocation(c *call) error {
	if err := c.requireBucket(); err != nil {
		return err
	}
	l := bucketLocation{Region: c.Region}
	if l.Region == classicRegion {
		l.Region = ""
	}
	return c.send(l)
}

type versioning struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ VersioningConfiguration"`
}

func getBucketVersioning(c *call) error {
	if err := c.requireBucket(); err != nil {
		return err
	}
	return c.send(versioning{})
}

type accessPolicy struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ AccessControlPolicy"`
	Owner   owner
	Grants  []grant `xml:"AccessControlList>Grant"`
}

type grant struct {
	Grantee    grantee
	Permission string
}

type grantee struct {
	XSI  string `xml:"xmlns:xsi,attr"`
	Type string `xml:"xsi:type,attr"`
	owner
}

// getACL answers what every bucket and object has: its owner may do everything.
func getACL(c *call) error {
	if c.target.key == "" {
		if err := c.requireBucket(); err != nil {
			return err
		}
	} else if _, err := c.find(c.target); err != nil {
		return err
	}
	o := c.owner()
	return c.send(accessPolicy{Owner: o, Grants: []grant{{grantee{"http://www.w3.org/2001/XMLSchema-instance", "CanonicalUser", o}, "FULL_CONTROL"}}})
}

type tagging struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ Tagging"`
	Tags    struct{} `xml:"TagSet"`
}

// getTagging answers that an object has no tags. Clients ask for them before they copy a large object.
func getTagging(c *call) error {
	if _, err := c.find(c.target); err != nil {
		return err
	}
	return c.send(tagging{})
}
