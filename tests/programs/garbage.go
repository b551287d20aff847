// Makes garbage: much of the time the runtime works on the stack of a thread, below main.churn or in
// goroutines of its own.
// Usage: garbage SECONDS
package main

import (
	"os"
	"strconv"
	"time"
)

type node struct{ left, right *node }

var kept []*node

//go:noinline
func grow(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{grow(depth - 1), grow(depth - 1)}
}

//go:noinline
func churn(until time.Time) {
	for time.Now().Before(until) {
		kept = append(kept[:0], grow(14), grow(14))
		_ = make([]byte, 1<<20)
	}
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	churn(time.Now().Add(time.Duration(seconds * 1e9)))
}
