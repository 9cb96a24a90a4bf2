package ledger

import "sync"

var mu sync.Mutex

func init() { go mu.Lock() }
