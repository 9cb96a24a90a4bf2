package httpapi

import (
	"math"
	"net/http"
	"strconv"

	"macronode/core/storage"
)

// getUpload answers with the state of an upload. One that was completed has all bytes of the object.
func getUpload(k *call) error {
	u, err := k.upload()
	if err != nil {
		return err
	}
	if u.fields != (uploadFields{}) {
		return errUploadQuery
	}
	if u.held {
		return u.answerState(http.StatusOK, u.row.Bytes, false)
	}
	stored, ok := k.Rows.Object(k.key.Tenant, u.bucket.ID, u.address)
	if !ok {
		return errUploadGone
	}
	return u.answerState(http.StatusOK, stored.Size, true)
}

// stateHeaders sets the header fields that describe an upload.
func (u *uploadCall) stateHeaders(size uint64, complete bool) {
	h := u.Header()
	h["Upload-Offset"] = []string{strconv.FormatUint(size, 10)}
	h["Upload-Complete"] = []string{"?0"}
	if complete {
		h["Upload-Complete"] = []string{"?1"}
		return
	}
	limit := "max-size=" + strconv.Itoa(storage.MaxObject) + ", min-append-size=" + strconv.FormatUint(u.MinAppend, 10)
	if left, ok := u.secondsLeft(); ok {
		limit += ", max-age=" + strconv.FormatInt(left, 10)
	}
	h["Upload-Limit"] = []string{limit}
}

// secondsLeft returns for how long the upload is kept. It is false if that is not limited.
func (u *uploadCall) secondsLeft() (int64, bool) {
	if u.UploadTTL == 0 {
		return 0, false
	}
	age := int64(0)
	if u.held {
		age = int64(u.Node.Status().At - u.row.Begun)
	}
	return max(0, u.UploadTTL.Milliseconds()-min(age, math.MaxInt32*1000)) / 1000, true
}

// answerState answers with the state of the upload.
func (u *uploadCall) answerState(status int, size uint64, complete bool) error {
	u.stateHeaders(size, complete)
	o := jsonObject{'{'}
	o.text("upload_id", u.id.String())
	o.text("address", u.address.String())
	o.text("bucket", string(u.bucket.Text))
	o.text("offset", strconv.FormatUint(size, 10))
	o.boolean("complete", complete)
	o = append(o, "}\n"...)
	u.identify()
	u.answer(status, jsonType, o)
	return nil
}
