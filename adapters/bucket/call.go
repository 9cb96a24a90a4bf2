package bucket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"macronode/adapters/provider"
)

// Operations, as errors name them.
const (
	opPut    = "put"
	opGet    = "get"
	opStat   = "stat"
	opRemove = "remove"
	opList   = "list"
	opProbe  = "probe"
)

// errTimeout ends a request that takes too long.
var errTimeout = fmt.Errorf("no answer in time: %w", os.ErrDeadlineExceeded)

// errChanged reports a file that was replaced or removed while it was read.
var errChanged = fmt.Errorf("the file was replaced or removed: %w", os.ErrNotExist)

// call does a request until it succeeds or cannot be repeated, within a time. uncertain is set if an attempt before the last one may
// have had an effect.
func (b *Bucket) call(op, name string, within time.Duration, request func(context.Context) error) (uncertain bool, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), within, errTimeout)
	defer cancel()
	if err := b.begin(ctx); err != nil {
		return false, err
	}
	defer b.end()
	return b.attempt(ctx, op, name, request)
}

// attempt is call with a context.
func (b *Bucket) attempt(ctx context.Context, op, name string, request func(context.Context) error) (uncertain bool, err error) {
	for n := 1; ; n++ {
		err = request(ctx)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		err = b.translate(op, name, err)
		if f := (*failure)(nil); !errors.As(err, &f) || !f.repeat || n == attempts {
			return uncertain, err
		}
		uncertain = true
		wait := time.NewTimer(minBackoff + rand.N(maxBackoff-minBackoff))
		select {
		case <-ctx.Done():
			wait.Stop()
			return uncertain, err
		case <-wait.C:
		}
	}
}

// failure is an error of a request.
type failure struct {
	op, name, bucket string
	status           int    // of the response; 0: there was none
	code             string // of the protocol; empty: there was none
	cause            error
	repeat           bool // another attempt may succeed
}

func (f *failure) Error() string {
	what := fmt.Sprintf("%s %s in bucket %s: ", f.op, f.name, f.bucket)
	switch {
	case f.status < http.StatusBadRequest: // the response is invalid, or there was none
		return what + f.cause.Error()
	case f.code == "":
		return fmt.Sprintf("%sstatus %d", what, f.status)
	}
	return fmt.Sprintf("%sstatus %d, %s", what, f.status, f.code)
}

// Is reports whether f says that the bucket cannot be used now: nothing is known of the file.
func (f *failure) Is(target error) bool {
	return target == provider.ErrUnavailable && !errors.Is(f.cause, os.ErrNotExist) && !errors.Is(f.cause, os.ErrExist) && !errors.Is(f.cause, syscall.EDQUOT)
}

// Unwrap returns the cause: os.ErrNotExist, os.ErrExist and syscall.EDQUOT among others.
func (f *failure) Unwrap() error { return f.cause }

// translate returns the error of a request as a failure.
func (b *Bucket) translate(op, name string, err error) error {
	if err == nil {
		return nil
	}
	f := &failure{op: op, name: name, bucket: b.Bucket, cause: rootCause(err)}
	if response := (*smithyhttp.ResponseError)(nil); errors.As(err, &response) {
		f.status = response.HTTPStatusCode()
	}
	if api := smithy.APIError(nil); errors.As(err, &api) && api.ErrorCode() != "UnknownError" {
		f.code = api.ErrorCode()
	}
	switch {
	case errors.Is(err, errTimeout):
	case f.code == "NoSuchBucket", f.code == "NoSuchUpload": // a fault of the configuration
	case f.code == "QuotaExceeded", f.code == "EntityTooLarge", f.status == http.StatusInsufficientStorage:
		f.cause = syscall.EDQUOT
	case f.status == http.StatusNotFound, f.status == http.StatusPreconditionFailed && op != opPut:
		f.cause = os.ErrNotExist
	case f.status == http.StatusPreconditionFailed:
		f.cause = os.ErrExist
	case f.status == http.StatusForbidden, f.status == http.StatusUnauthorized:
		f.cause = os.ErrPermission
	case f.status == 0, f.status == http.StatusConflict, f.status == http.StatusTooManyRequests, f.status == http.StatusRequestTimeout,
		f.status >= http.StatusInternalServerError && f.status != http.StatusNotImplemented:
		_, unreadable := f.cause.(secretError) //nolint:errorlint // rootCause has unwrapped it
		f.repeat = !unreadable && !errors.Is(err, errLongAnswer)
	}
	return f
}

// rootCause returns the innermost error: the ones around it name the operation again.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if _, ok := inner.(interface{ Timeout() bool }); inner == nil || ok && errors.Unwrap(inner) == nil {
			return err
		}
		err = inner
	}
}
