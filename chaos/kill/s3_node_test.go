package kill_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"macronode/chaos/kill"
	"macronode/chaos/refmodel"
)

const (
	pricePerMiB = 3
	payer       = "storage:prepaid"
	beneficiary = "storage:revenue"
)

// A paidNode is a node with an S3 listener, on the same ports in each run, whose writes have a price.
type paidNode struct {
	kill.Node
	credential credential
	issued     uint64
}

// newPaidNode starts a node. Its collector of files runs in an interval.
func newPaidNode(t *testing.T, binary, data, collectInterval string) *paidNode {
	t.Helper()
	n := &paidNode{Node: kill.Node{Binary: binary, Data: data, Args: []string{"--set", fmt.Sprintf("storage.price.per_mib=%d", pricePerMiB),
		"--set", "storage.price.asset=EUR/2", "--set", "storage.collect_interval=" + collectInterval, "--set", "storage.bucket_bytes=16MiB"}}}
	for i, flag := range []string{"--http", "--admin", "--s3"} {
		n.Args = append(n.Args, flag, freePort(t, i))
	}
	start(t, &n.Node)
	run(t, &n.credential, binary, "--json", "keys", "s3", "--data", data)
	return n
}

// freePort returns the i-th of some addresses that are free. Connections do not use their ports while the node is down.
func freePort(t *testing.T, i int) string {
	t.Helper()
	for port := 20_000 + i*3000; port < 23_000+i*3000; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// issue gives the payer money.
func (n *paidNode) issue(t *testing.T, amount uint64) {
	t.Helper()
	body := fmt.Sprintf(`{"to":%q,"asset":"EUR/2","amount_minor":"%d"}`, payer, amount)
	status, answer, err := n.Post(t.Context(), "/v1/issue", fmt.Sprintf("issue-%d", n.issued), body)
	if err != nil || status != 200 {
		t.Fatalf("issue: %d %s, %v", status, answer, err)
	}
	n.issued += amount
}

// balance returns what an account has, and how much of it is held.
func (n *paidNode) balance(t *testing.T, account string) (amount, held uint64) {
	t.Helper()
	status, answer, err := n.Get(t.Context(), "/v1/balance?asset=EUR/2&account="+account)
	if err != nil || status != 200 {
		t.Fatalf("balance of %s: %d %s, %v", account, status, answer, err)
	}
	b, err := refmodel.ReadBalance(answer)
	if err != nil {
		t.Fatal(err)
	}
	if amount, err = strconv.ParseUint(b.Amount, 10, 64); err == nil {
		held, err = strconv.ParseUint(b.Held, 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return amount, held
}

// holds returns the active holds of the payer: their amounts by their transaction IDs.
func (n *paidNode) holds(t *testing.T) map[string]uint64 {
	t.Helper()
	out, err := exec.Command(n.Binary, "--json", "wallet", "holds", payer, "--state", "active", "--data", n.Data).Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var h struct {
			TxID   string `json:"opened_txid"`
			Amount string `json:"amount_minor"`
		}
		if err := d.Decode(&h); err != nil {
			t.Fatal(err)
		}
		if all[strings.TrimPrefix(h.TxID, "tx_")], err = strconv.ParseUint(h.Amount, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkMoney requires that the amounts agree with each other, and that no hold is left but by a request without an
// answer. It returns the active holds and the revenue.
func (n *paidNode) checkMoney(t *testing.T, cut int) (holds map[string]uint64, revenue uint64) {
	t.Helper()
	prepaid, held := n.balance(t, payer)
	revenue, _ = n.balance(t, beneficiary)
	holds = n.holds(t)
	sum := uint64(0)
	for _, amount := range holds {
		sum += amount
	}
	if prepaid+revenue != n.issued || held != sum {
		t.Fatalf("prepaid %d, of it held %d, revenue %d, issued %d; the active holds have %d", prepaid, held, revenue, n.issued, sum)
	}
	if len(holds) > cut {
		t.Fatalf("%d active holds, %d writes without an answer", len(holds), cut)
	}
	return holds, revenue
}
