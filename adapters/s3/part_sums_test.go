package s3_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestPartsHaveChecksumOfUpload: a part with a checksum of another algorithm is refused.
func TestPartsHaveChecksumOfUpload(t *testing.T) {
	w := newWorld(t)
	c := w.bucket(t)
	u := begin(t, c, "a", func(in *sdk.CreateMultipartUploadInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c })
	for algorithm, want := range map[types.ChecksumAlgorithm]string{types.ChecksumAlgorithmSha1: "400 InvalidRequest", types.ChecksumAlgorithmCrc32c: ""} {
		_, err := c.UploadPart(context.Background(), &sdk.UploadPartInput{Bucket: aws.String(bucketName), Key: aws.String("a"), UploadId: u.id,
			PartNumber: aws.Int32(1), ChecksumAlgorithm: algorithm, Body: reader([]byte("x"))})
		if codeOf(err) != want {
			t.Errorf("%s: %v, want %s", algorithm, err, want)
		}
	}
}
