// rooted SECONDS: main -> outer -> inner, which burns some milliseconds and sleeps for two in turn, in the
// kernel: what waits in Go's runtime has left its goroutine's stack.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

var sink uint64

//go:noinline
func inner(end time.Time) {
	x := uint64(1)
	for time.Now().Before(end) {
		for i := uint64(0); i < 4000000; i++ {
			x = x*2862933555777941757 + i
		}
		pause := syscall.NsecToTimespec(2000000)
		syscall.Nanosleep(&pause, nil)
	}
	sink = x
}

//go:noinline
func outer(end time.Time) {
	inner(end)
	sink++
}

func main() {
	runtime.LockOSThread()
	seconds, _ := strconv.Atoi(os.Args[1])
	fmt.Println("ready")
	outer(time.Now().Add(time.Duration(seconds) * time.Second))
}
