package s3

import (
	"encoding/xml"
	"slices"
	"strings"

	"macronode/adapters/checksum"
	"macronode/core/storage"
	"macronode/core/types"
)

type partItem struct {
	PartNumber   uint16
	LastModified string
	ETag         string
	Size         uint64
}

type partList struct {
	XMLName              xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
	Bucket               string
	Key                  string
	UploadID             string `xml:"UploadId"`
	PartNumberMarker     int
	NextPartNumberMarker uint16 `xml:",omitempty"`
	MaxParts             int
	IsTruncated          bool
	EncodingType         string `xml:",omitempty"`
	Initiator            owner
	Owner                owner
	StorageClass         string
	ChecksumAlgorithm    string     `xml:",omitempty"`
	ChecksumType         string     `xml:",omitempty"`
	Parts                []partItem `xml:"Part"`
}

// listParts lists the parts of an upload by number.
func listParts(c *call) error {
	id, _, err := c.upload()
	if err != nil {
		return err
	}
	limit, err := c.number("max-parts", maxKeys, maxKeys)
	if err != nil {
		return err
	}
	after, err := c.number("part-number-marker", 0, storage.MaxPart)
	if err != nil {
		return err
	}
	encode, err := encoding(c.param("encoding-type"))
	if err != nil {
		return err
	}
	list := partList{Bucket: c.target.bucket, Key: encode(c.target.key), UploadID: id.String(), PartNumberMarker: after, MaxParts: limit,
		EncodingType: c.param("encoding-type"), Initiator: c.owner(), Owner: c.owner(), StorageClass: "STANDARD"}
	if sum := c.checksumOf(id); sum.algorithm != checksum.None {
		list.ChecksumAlgorithm, list.ChecksumType = sum.algorithm.String(), sum.kind.String()
	}
	parts := c.Rows.Parts(id, uint16(after), limit+1)
	if len(parts) > limit {
		parts, list.IsTruncated = parts[:limit], limit > 0
	}
	for _, p := range parts {
		list.Parts = append(list.Parts, partItem{p.Number, stamp(p.At), quote(etagText(storage.ETag{MD5: p.MD5}, p.Address)), p.Size})
		list.NextPartNumberMarker = p.Number
	}
	return c.sendPage(len(parts), func() (any, error) { return list, nil })
}

// checksumOf returns what the parts of an upload are checked with.
func (c *call) checksumOf(id storage.UploadID) storedChecksum {
	d, err := c.Rows.Details(types.Position(id))
	if err != nil {
		return storedChecksum{}
	}
	m, err := decodeMeta(d.Meta)
	if err != nil {
		return storedChecksum{}
	}
	return m.checksum
}

type uploadItem struct {
	Key          string
	UploadID     string `xml:"UploadId"`
	Initiator    owner
	Owner        owner
	StorageClass string
	Initiated    string
}

type uploadList struct {
	XMLName            xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket             string
	KeyMarker          string
	UploadIDMarker     string `xml:"UploadIdMarker"`
	NextKeyMarker      string `xml:",omitempty"`
	NextUploadIDMarker string `xml:"NextUploadIdMarker,omitempty"`
	Prefix             string `xml:",omitempty"`
	Delimiter          string `xml:",omitempty"`
	EncodingType       string `xml:",omitempty"`
	MaxUploads         int
	IsTruncated        bool
	Uploads            []uploadItem `xml:"Upload"`
	CommonPrefixes     []listedPrefix
}

// uploadMarkers are where a list of uploads goes on.
type uploadMarkers struct{ key, id string }

// isBefore reports whether an upload belongs to an earlier part of the list. Without an ID, a key is done with.
func (m uploadMarkers) isBefore(u ListedUpload) bool {
	if m.key == "" || u.Name != m.key {
		return m.key != "" && u.Name < m.key
	}
	return m.id == "" || u.ID.String() <= m.id
}

// listUploads lists the uploads in progress of a bucket by key, then by ID.
func listUploads(c *call) error {
	if err := c.requireBucket(); err != nil {
		return err
	}
	limit, err := c.number("max-uploads", maxKeys, maxKeys)
	if err != nil {
		return err
	}
	encode, err := encoding(c.param("encoding-type"))
	if err != nil {
		return err
	}
	all, err := c.Names.Uploads(c.r.Context(), c.tenant(), c.bucket.ID)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b ListedUpload) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return strings.Compare(a.ID.String(), b.ID.String())
	})
	from, prefix, delimiter := uploadMarkers{c.param("key-marker"), c.param("upload-id-marker")}, c.param("prefix"), c.param("delimiter")
	list := uploadList{Bucket: c.target.bucket, KeyMarker: encode(from.key), UploadIDMarker: from.id, Prefix: encode(prefix), Delimiter: encode(delimiter),
		EncodingType: c.param("encoding-type"), MaxUploads: limit}
	last, under := uploadMarkers{}, ""
	for _, u := range all {
		if !strings.HasPrefix(u.Name, prefix) || from.isBefore(u) {
			continue
		}
		common, is := commonPrefix(u.Name, prefix, delimiter)
		if is && (common == under || common == from.key) {
			continue
		}
		if len(list.Uploads)+len(list.CommonPrefixes) == limit {
			list.IsTruncated = limit > 0
			break
		}
		if is {
			under, last = common, uploadMarkers{key: common}
			list.CommonPrefixes = append(list.CommonPrefixes, listedPrefix{encode(common)})
			continue
		}
		last = uploadMarkers{u.Name, u.ID.String()}
		list.Uploads = append(list.Uploads, uploadItem{encode(u.Name), u.ID.String(), c.owner(), c.owner(), "STANDARD", stamp(u.At)})
	}
	if list.IsTruncated {
		list.NextKeyMarker, list.NextUploadIDMarker = encode(last.key), last.id
	}
	return c.sendPage(len(list.Uploads), func() (any, error) { return list, nil })
}
