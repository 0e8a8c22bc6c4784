// lockcheck finds I/O under a lock: between Lock and Unlock of a sync.Mutex or sync.RWMutex, in the same function or in
// one that it calls there, nothing may ask a store, Kafka, a network, a file or a log, sleep, wait for a channel, or
// call what takes a context. A goroutine that waits for such a lock would wait for all of that. `make lint` runs it.
//
// A call of a function value counts as I/O, but for clocks (func() time.Time), for parameters (what is given is checked
// where it is given), and for fields of structs and parameters of functions whose comment says "no I/O": what is put
// there is checked too. Calls through interfaces without a context count as none, but for those of packages that do
// I/O. Test files are not looked at.
package main

import (
	"fmt"
	"os"
)

func main() {
	found, err := check(".", "./...")
	if err != nil {
		fmt.Fprintln(os.Stderr, "lockcheck:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(found) > 0 {
		fmt.Fprintln(os.Stderr, "lockcheck: take what is needed under the lock, let go of it, then ask; if one at a "+
			"time may ask, use internal/permit")
		os.Exit(1)
	}
}
