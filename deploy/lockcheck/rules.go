package main

import (
	"go/types"
	"regexp"
	"strings"
)

// waiting are packages of which a call may wait for something outside the process, as prefixes of their paths.
var waiting = []string{"os", "net", "log", "io", "database/sql", "github.com/jackc/pgx", "github.com/twmb/franz-go",
	"go.etcd.io/bbolt"}

// pure are functions of these, and of their types, that wait for nothing.
var pure = regexp.MustCompile(`^os\.(Getenv|Getpid|Geteuid|IsNotExist|IsExist)$|` +
	`^net\.(ParseIP|ParseCIDR|JoinHostPort|SplitHostPort|IPv4|CIDRMask)$|^net/url\.|^net/netip\.|` +
	`^\(net\.(IP|IPMask|Addr|IPNet|\*IPNet)\)\.|^\(net\.Listener\)\.Addr$|` +
	`^\(net/http\.(Header|ResponseWriter)\)\.(Get|Set|Add|Del|Values|Header)$|` +
	`\)\.Set(Read|Write)?Deadline$|^\(net/url\.`)

// others are functions that wait, of packages that mostly do not.
var others = regexp.MustCompile(`^time\.Sleep$|^\(\*sync\.(WaitGroup|Cond)\)\.Wait$|^fmt\.(Print|Scan)|` +
	`^crypto/tls\.(Dial|Load)|^\(\*crypto/tls\.Conn\)\.(Read|Write|Handshake|Close)`)

// waits says whether a call of a function outside the module may wait; one that takes a context may, wherever it is.
func waits(f *types.Func) bool {
	name := f.FullName()
	if pure.MatchString(name) || f.Pkg() == nil || f.Pkg().Path() == "context" {
		return false
	}
	if others.MatchString(name) || takesContext(f) {
		return true
	}
	for _, path := range waiting {
		if p := f.Pkg().Path(); p == path || strings.HasPrefix(p, path+"/") {
			return true
		}
	}
	return false
}

func takesContext(f *types.Func) bool {
	parameters := f.Type().(*types.Signature).Params()
	for i := range parameters.Len() {
		if parameters.At(i).Type().String() == "context.Context" {
			return true
		}
	}
	return false
}

// isClock says whether a function value tells the time.
func isClock(t types.Type) bool {
	s, is := t.Underlying().(*types.Signature)
	return is && s.Params().Len() == 0 && s.Results().Len() == 1 && s.Results().At(0).Type().String() == "time.Time"
}

// turnsLock says whether a function locks or unlocks a mutex.
func turnsLock(f *types.Func) (lock, unlock bool) {
	switch f.FullName() {
	case "(*sync.Mutex).Lock", "(*sync.RWMutex).Lock", "(*sync.RWMutex).RLock":
		return true, false
	case "(*sync.Mutex).Unlock", "(*sync.RWMutex).Unlock", "(*sync.RWMutex).RUnlock":
		return false, true
	}
	return false, false
}
