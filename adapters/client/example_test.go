package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"macronode/adapters/client"
)

func Example() {
	address, key := node() // for example http://127.0.0.1:8080, and the content of bootstrap.key
	c, err := client.New(address, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	if _, err := c.Issue(ctx, client.IssueRequest{To: "first", Asset: "EUR/2", AmountMinor: "1000"}); err != nil {
		log.Fatal(err)
	}
	b, err := c.Balance(ctx, "first", "EUR/2", 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Account, "has", b.AmountMinor, b.Asset)
	// Output: first has 1000 EUR/2
}

// A payment that survives a crash of the caller: the key and the request are stored before the
// call, which is repeated until there is a response.
func ExampleClient_Transfer() {
	address, key := node()
	c, err := client.New(address, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := c.Issue(ctx, client.IssueRequest{To: "ann", Asset: "EUR/2", AmountMinor: "1000"}); err != nil {
		log.Fatal(err)
	}

	pay := client.TransferRequest{From: "ann", To: "bob", Asset: "EUR/2", AmountMinor: "250", Nonce: 1} // stored with the key
	for {
		r, err := c.Transfer(ctx, pay, client.WithIdempotencyKey("order-17"))
		switch {
		case errors.Is(err, client.ErrUnknown) && ctx.Err() == nil:
			continue // repeat the same request, never with another key
		case errors.Is(err, client.InsufficientFunds):
			fmt.Println("ann has too little")
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(r.From, "has paid", r.AmountMinor, r.Asset, "to", r.To)
		}
		break
	}
	again, err := c.Transfer(ctx, pay, client.WithIdempotencyKey("order-17"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("asked again, it was done before:", again.Replayed)
	// Output:
	// ann has paid 250 EUR/2 to bob
	// asked again, it was done before: true
}

func ExampleClient_Hold() {
	address, key := node()
	c, err := client.New(address, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := c.Issue(ctx, client.IssueRequest{To: "guest", Asset: "EUR/2", AmountMinor: "1000"}); err != nil {
		log.Fatal(err)
	}

	held, err := c.Hold(ctx, client.HoldRequest{From: "guest", Beneficiary: "hotel", Asset: "EUR/2", AmountMinor: "300", Nonce: 1,
		ExpiresAt: time.Now().Add(48 * time.Hour)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Capture(ctx, held.HoldID, client.CaptureRequest{AmountMinor: "120", To: "hotel"}); err != nil {
		log.Fatal(err)
	}
	b, err := c.Balance(ctx, "guest", "EUR/2", 0)
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Release(ctx, held.HoldID)
	fmt.Println(b.AvailableMinor, "is available;", errors.Is(err, client.HoldNotActive))
	// Output: 880 is available; true
}

func ExampleClient_Batch() {
	address, key := node()
	c, err := client.New(address, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	b, err := c.Batch(ctx, client.BatchRequest{Items: []client.BatchItem{
		{Op: "issue", To: "payer", Asset: "EUR/2", AmountMinor: "10"},
		{Op: "transfer", From: "payer", To: "x", Asset: "EUR/2", AmountMinor: "7", Nonce: 1},
		{Op: "transfer", From: "payer", To: "y", Asset: "EUR/2", AmountMinor: "7", Nonce: 2},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for i, r := range b.Results {
		if r.Problem != nil {
			fmt.Println(i, r.Problem)
		} else {
			fmt.Println(i, r.Receipt.Op)
		}
	}
	// Output:
	// 0 issue
	// 1 transfer
	// 2 insufficient_funds: The available balance of the account is less than the amount
}

// A statement is read page by page, and a receipt proves its content.
func ExampleClient_Entries() {
	address, key := node()
	c, err := client.New(address, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := c.Issue(ctx, client.IssueRequest{To: "stated", Asset: "EUR/2", AmountMinor: "10"})
	if err != nil || r.Verify() != nil {
		log.Fatal(err)
	}

	for e, err := range c.Entries(ctx, "stated", 0, client.ListOptions{MinSeq: r.Seq}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Direction, e.AmountMinor, e.Asset, "of", e.Counterparty, "makes", e.BalanceMinor)
	}
	// Output: credit 10 EUR/2 of issuance:EUR/2 makes 10
}

// A feed continues after any broken connection.
func ExampleClient_Stream() {
	address, key := node()
	c, err := client.New(address, key, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := c.Issue(ctx, client.IssueRequest{To: "fed", Asset: "EUR/2", AmountMinor: "10"})
	if err != nil {
		log.Fatal(err)
	}

	for change, err := range c.Stream(ctx, r.Seq-1) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(change.Op, change.AmountMinor, change.Asset, "to", change.To)
		break
	}
	// Output: issue 10 EUR/2 to fed
}
