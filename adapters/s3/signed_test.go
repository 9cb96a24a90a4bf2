package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestChecksums: each algorithm of the SDK is verified, stored and shown on demand.
func TestChecksums(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	text := []byte("123456789")
	for algorithm, want := range map[types.ChecksumAlgorithm]string{"CRC32": "y/Q5Jg==", "CRC32C": "4waSgw==", "CRC64NVME": "rosUhgp5mIg=",
		"SHA1": "98O8HYCOBHMq32eZZczDTKeuNEE=", "SHA256": "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="} {
		out := put(t, c, "a", text, func(in *sdk.PutObjectInput) { in.ChecksumAlgorithm = algorithm })
		head, err := c.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), ChecksumMode: types.ChecksumModeEnabled})
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string]string{
			"put":  aws.ToString(out.ChecksumCRC32) + aws.ToString(out.ChecksumCRC32C) + aws.ToString(out.ChecksumCRC64NVME) + aws.ToString(out.ChecksumSHA1) + aws.ToString(out.ChecksumSHA256),
			"head": aws.ToString(head.ChecksumCRC32) + aws.ToString(head.ChecksumCRC32C) + aws.ToString(head.ChecksumCRC64NVME) + aws.ToString(head.ChecksumSHA1) + aws.ToString(head.ChecksumSHA256),
		} {
			if got != want {
				t.Errorf("%s of %s: %q, want %q", name, algorithm, got, want)
			}
		}
		if head.ChecksumType != types.ChecksumTypeFullObject {
			t.Errorf("%s: type %s", algorithm, head.ChecksumType)
		}
		copied, err := c.CopyObject(ctx, &sdk.CopyObjectInput{Bucket: aws.String(bucketName), Key: aws.String("b"), CopySource: aws.String(bucketName + "/a")})
		if err != nil || aws.ToString(copied.CopyObjectResult.ChecksumCRC32) != aws.ToString(head.ChecksumCRC32) || aws.ToString(copied.CopyObjectResult.ChecksumSHA256) != aws.ToString(head.ChecksumSHA256) {
			t.Errorf("copy of %s: %+v, %v", algorithm, copied, err)
		}
	}
	plain, err := c.HeadObject(ctx, &sdk.HeadObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a")})
	if err != nil || plain.ChecksumType != "" {
		t.Errorf("without the mode: %+v, %v", plain, err)
	}
	if got, _ := get(t, c, "a", func(in *sdk.GetObjectInput) {
		in.ChecksumMode, in.Range = types.ChecksumModeEnabled, aws.String("bytes=0-1")
	}); got.ChecksumType != "" {
		t.Errorf("of a range: %+v", got)
	}
}

// TestUnsignedAndStreamingBodies sends bodies in the forms of the SDK.
func TestUnsignedAndStreamingBodies(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	want := content(300_000, 1)
	for name, body := range map[string]io.Reader{"seekable": reader(want), "a stream": io.MultiReader(bytes.NewReader(want))} {
		_, err := c.PutObject(context.Background(), &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a"), Body: body, ContentLength: aws.Int64(int64(len(want))), ContentEncoding: aws.String("gzip")},
			func(o *sdk.Options) {
				if name == "a stream" {
					o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
					o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
				}
			})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, b := get(t, c, "a"); !bytes.Equal(b, want) || aws.ToString(got.ContentEncoding) != "gzip" {
			t.Errorf("%s: %d bytes, encoding %q", name, len(b), aws.ToString(got.ContentEncoding))
		}
	}
}

// TestOtherSignaturesAreRefused: a form and signature version 2 are refused with the reason.
func TestOtherSignaturesAreRefused(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	for _, q := range []struct{ method, target, kind, want string }{
		{"POST", "/" + bucketName, "multipart/form-data; boundary=b", "501 NotImplemented"},
		{"POST", "/" + bucketName + "?delete", "application/xml", "403 AccessDenied"},
		{"GET", "/" + bucketName + "/a?AWSAccessKeyId=ALL&Expires=1&Signature=x", "", "400 InvalidRequest"},
		{"GET", "/" + bucketName + "/a", "", "403 AccessDenied"},
	} {
		r, err := http.NewRequest(q.method, "http://localhost"+q.target, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", q.kind)
		if a := w.serveDirectly(t, r, ""); fmt.Sprint(a.status, " ", a.xml.Code) != q.want {
			t.Errorf("%s %s: %d %s, want %s", q.method, q.target, a.status, a.xml.Code, q.want)
		}
	}
}

// TestPresigned uses URLs that contain the signature.
func TestPresigned(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bucket(t), context.Background()
	p := sdk.NewPresignClient(c)
	do := func(method, url string, body string) (int, string, http.Header) {
		r, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := w.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b), res.Header
	}
	put, err := p.PresignPutObject(ctx, &sdk.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a b")})
	if err != nil {
		t.Fatal(err)
	}
	if status, body, _ := do(http.MethodPut, put.URL, "presigned"); status != 200 {
		t.Errorf("PUT: %d %s", status, body)
	}
	got, err := p.PresignGetObject(ctx, &sdk.GetObjectInput{Bucket: aws.String(bucketName), Key: aws.String("a b"), ResponseContentType: aws.String("text/html")})
	if err != nil {
		t.Fatal(err)
	}
	if status, body, header := do(http.MethodGet, got.URL, ""); status != 200 || body != "presigned" || header.Get("Content-Type") != "text/html" {
		t.Errorf("GET: %d %s %v", status, body, header)
	}
	w.quiet().waited = time.Hour
	if status, body, _ := do(http.MethodGet, got.URL, ""); status != 403 || !strings.Contains(body, "AccessDenied") {
		t.Errorf("after an hour: %d %s", status, body)
	}
}

// TestVirtualHost names the bucket by the host.
func TestVirtualHost(t *testing.T) {
	w := newWorld(t)
	w.bucket(t)
	for _, host := range []string{bucketName + ".s3.test", bucketName + ".s3.test:9000", strings.ToUpper(bucketName) + ".S3.test"} {
		header := map[string]string{"Host": host}
		if got := w.send(t, http.MethodPut, "/a/b", header, host); got.status != 200 {
			t.Errorf("%s: PUT %+v", host, got)
		}
		if got := w.send(t, http.MethodGet, "/a/b", header, ""); got.body != host {
			t.Errorf("%s: GET %+v", host, got)
		}
		if got := w.send(t, http.MethodGet, "/?list-type=2", header, ""); !strings.Contains(got.body, "<Key>a/b</Key>") {
			t.Errorf("%s: list %+v", host, got)
		}
	}
	for _, host := range []string{"s3.test", "localhost", "photos.s3.test.example"} {
		if got := w.send(t, http.MethodGet, "/"+bucketName+"/a/b", map[string]string{"Host": host}, ""); got.status != 200 {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// TestBucketOwner: a request may name the owner that it expects.
func TestBucketOwner(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	for owner, want := range map[string]string{"1": "", "2": "403 Forbidden"} {
		_, err := c.HeadBucket(context.Background(), &sdk.HeadBucketInput{Bucket: aws.String(bucketName), ExpectedBucketOwner: &owner})
		if codeOf(err) != want {
			t.Errorf("%s: %v", owner, err)
		}
	}
	acl, err := c.GetObjectAcl(context.Background(), &sdk.GetObjectAclInput{Bucket: aws.String(bucketName), Key: aws.String("missing")})
	if codeOf(err) != "404 NoSuchKey" {
		t.Errorf("%+v, %v", acl, err)
	}
	put(t, c, "a", nil, func(in *sdk.PutObjectInput) {
		in.ACL, in.StorageClass = types.ObjectCannedACLPrivate, types.StorageClassStandard
	})
	if tags, err := c.GetObjectTagging(context.Background(), &sdk.GetObjectTaggingInput{Bucket: aws.String(bucketName), Key: aws.String("a")}); err != nil || len(tags.TagSet) > 0 {
		t.Errorf("%+v, %v", tags, err)
	}
	if acl, err = c.GetObjectAcl(context.Background(), &sdk.GetObjectAclInput{Bucket: aws.String(bucketName), Key: aws.String("a")}); err != nil || fmt.Sprint(aws.ToString(acl.Grants[0].Grantee.ID)) != "1" {
		t.Errorf("%+v, %v", acl, err)
	}
}
