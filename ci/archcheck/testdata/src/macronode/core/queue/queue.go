package queue

import (
	"sync"   // want `pure layer core/queue may not import sync`
	"unsafe" // want `pure layer core/queue may not import unsafe`
)

var mu sync.Mutex // want `no package state here: mu`

var size = unsafe.Sizeof(mu) // want `no package state here: size` `layer core/queue may not use unsafe.Sizeof`

func Sins(c chan int) { // want `no channel here`
	go func() {}() // want `no goroutine here: only adapters and cmd may start one`
	c <- 1         // want `no channel here`
	<-c            // want `no channel here`
	select {}      // want `no channel here`
	for range c {  // want `no channel here`
	}
}
