// Burns the CPU in known shares: each round 50 % in alpha, 30 % in beta, 20 % in gamma, all below
// rounds in a goroutine of its own; what alpha and beta call is not inlined, what gamma calls is.
// Usage: rounds CPU_SECONDS
package main

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

var sink uint64

//go:noinline
func spin(n int) uint64 {
	x := uint64(n)
	for i := 0; i < n; i++ {
		x = x*2862933555777941757 + 3037000493
	}
	return x
}

func whirl(n int) uint64 {
	x := uint64(n)
	for i := 0; i < n; i++ {
		x = x*2862933555777941757 + 3037000493
	}
	return x
}

//go:noinline
func alpha() { sink += spin(50000) }

//go:noinline
func beta() { sink += spin(30000) }

//go:noinline
func gamma() { sink += whirl(20000) }

// CPU time that the process has used.
func used() time.Duration {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

type worker struct{ count int }

//go:noinline
func (w *worker) rounds(until time.Duration, done chan int) {
	for w.count%16 != 0 || used() < until {
		alpha()
		beta()
		gamma()
		w.count++
	}
	done <- w.count
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	done := make(chan int)
	go new(worker).rounds(time.Duration(seconds*1e9), done)
	<-done
}
