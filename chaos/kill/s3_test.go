package kill_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"macronode/chaos/kill"
	"macronode/core/types"
)

// allKeys returns the keys of some clients.
func allKeys(clients int) (all []string) {
	all = append(all, sharedKeys[:]...)
	for i := range clients {
		all = append(all, ownKey(i))
	}
	return all
}

// readObjects reads keys while no request is open, and compares them with a list. It returns the ETags.
func readObjects(t *testing.T, c *s3Client, keys []string) map[string]string {
	t.Helper()
	listed, found := awaitList(t, c), map[string]string{}
	for _, key := range keys {
		etag, ok, err := c.get(t.Context(), key)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", key, ok, err)
		}
		if etag != deleted {
			found[key] = etag
		}
	}
	if !maps.Equal(listed, found) {
		t.Fatalf("the list has %v, reads found %v", listed, found)
	}
	return found
}

// settleObjects requires that the writes explain what reads find, and notes that. It returns the ETags.
func settleObjects(t *testing.T, c *s3Client, keys []string) map[string]string {
	t.Helper()
	began := c.history.now()
	found := readObjects(t, c, keys)
	for _, key := range keys {
		if err := c.history.check(key, found[key], began, c.history.now()); err != nil {
			t.Fatal(err)
		}
		c.history.settle(key, found[key])
	}
	return found
}

// awaitList returns the ETags of all keys in a list. After a restart the index may not be ready yet.
func awaitList(t *testing.T, c *s3Client) map[string]string {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		listed, ok, err := c.keys(t.Context())
		if err != nil || !ok && time.Since(began) > patience {
			t.Fatalf("list: %v, %v", ok, err)
		}
		if ok {
			return listed
		}
	}
}

// TestKillS3 kills the real binary while clients of the SDK write a few keys that have a price. After each restart every
// acknowledged write is there unless another one replaced it, the list and the reads agree, and the money adds up. At the
// end the journal has each acknowledged write with its price, and no active hold but those of interrupted writes.
func TestKillS3(t *testing.T) {
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	n := newPaidNode(t, binary, t.TempDir(), "10ms")
	h := newKeyHistory()
	all := newS3Clients(t, n, h, 6)
	dice := types.NewRand(*seed)
	runs := *kills/4 + 1
	for run := range runs {
		if run > 0 {
			start(t, &n.Node)
			settleObjects(t, all[0], allKeys(len(all)))
			n.checkMoney(t, cutOf(all))
		}
		n.issue(t, 600)
		runAndKill(t, n, all, &dice)
	}
	start(t, &n.Node)
	endUploads(t, all)
	found := settleObjects(t, all[0], allKeys(len(all)))
	holds, revenue := n.checkMoney(t, cutOf(all))
	awaitFiles(t, n, h, found)
	if output, code := n.Stop(); code != 0 {
		t.Fatalf("exit %d:\n%s", code, output)
	}
	j := checkJournal(t, n, found, holds, revenue)
	if err := j.checkWrites(h); err != nil {
		t.Fatal(err)
	}
	var verified struct{ OK bool }
	run(t, &verified, binary, "--json", "verify", "--data", n.Data)
	var writes, reads, lists, refusals int
	for _, c := range all {
		writes, reads, lists, refusals = writes+c.writes, reads+c.reads, lists+c.lists, refusals+c.refusals
	}
	if !verified.OK || writes < 10*runs || reads == 0 || lists == 0 || j.free == 0 || cutOf(all) == 0 {
		t.Fatalf("verified %v; %d writes, %d reads, %d lists, %d free, %d cut: no load", verified.OK, writes, reads, lists, j.free, cutOf(all))
	}
	t.Logf("%d runs: %d writes, %d free, %d refused, %d without an answer, %d reads, %d lists; revenue %d, %d of %d holds left",
		runs, writes, j.free, refusals, cutOf(all), reads, lists, revenue, len(holds), j.opened)
}

// newS3Clients creates the bucket, and returns clients of a node.
func newS3Clients(t *testing.T, n *paidNode, h *keyHistory, count int) (all []*s3Client) {
	t.Helper()
	for i := range count {
		all = append(all, newS3Client(i, &n.credential, h))
	}
	if _, err := all[0].sdk.CreateBucket(t.Context(), &sdk.CreateBucketInput{Bucket: aws.String(s3Bucket)}); err != nil {
		t.Fatal(err)
	}
	return all
}

// cutOf returns how many writes with a price have no answer.
func cutOf(all []*s3Client) (n int) {
	for _, c := range all {
		n += c.cut
	}
	return n
}

// runAndKill ends a run of n at some moment while all clients send requests.
func runAndKill(t *testing.T, n *paidNode, all []*s3Client, dice *types.Rand) {
	t.Helper()
	errs := make(chan error, len(all))
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() { errs <- c.run(t.Context()) })
	}
	awaitFolded(t, &n.Node, folded(t, &n.Node)+uint64(8*len(all)))
	time.Sleep(time.Duration(dice.Uint64n(300)) * time.Millisecond) // the moment is what is drawn here
	n.Kill()
	running.Wait()
	all[0].history.interrupt()
	for range all {
		if err := <-errs; err != nil {
			t.Fatalf("go test ./chaos/kill -run %s -seed %d: %v\n%s", t.Name(), *seed, err, n.Output())
		}
	}
}

// endUploads completes or aborts the multipart uploads that were interrupted.
func endUploads(t *testing.T, all []*s3Client) {
	t.Helper()
	for _, c := range all {
		for range 10 {
			if c.pending == nil {
				break
			}
			if err := c.resume(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		if c.pending != nil {
			t.Fatalf("client %d: the upload %s does not end", c.number, c.pending.id)
		}
	}
}

// awaitFiles waits until the node has one file for each distinct content.
func awaitFiles(t *testing.T, n *paidNode, h *keyHistory, found map[string]string) {
	t.Helper()
	distinct := map[string]bool{}
	for _, etag := range found {
		b, _ := h.content(etag)
		distinct[string(b)] = true
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		files, _, err := kill.ObjectFiles(n.Data, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == len(distinct) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%d files of %d contents: %q", len(files), len(distinct), files)
		}
	}
}

// checkJournal compares the journal of a stopped node with the reads and the money.
func checkJournal(t *testing.T, n *paidNode, found map[string]string, holds map[string]uint64, revenue uint64) *paidJournal {
	t.Helper()
	j, err := readPaidJournal(n.Data, pricePerMiB)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for key, c := range j.objects {
		names[key] = etagOf(&c)
	}
	left := map[string]uint64{}
	for id, amount := range j.holds {
		left[fmt.Sprintf("%x", id[:])] = amount
	}
	if !maps.Equal(names, found) || !maps.Equal(left, holds) || j.revenue != revenue {
		t.Fatalf("the journal has %v, the holds %v and the revenue %d, the node had %v, %v and %d", names, left, j.revenue, found, holds, revenue)
	}
	return j
}
