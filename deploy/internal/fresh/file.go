// Package fresh keeps what files say, and reads them again when they changed: keys, certificates and users are renewed
// without a restart.
package fresh

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// File is what one file, or several that belong together, say.
type File[T any] struct {
	paths  []string
	read   func() (T, error)
	failed func(error)

	lock  sync.Mutex // guards what follows
	stamp string
	value T
}

// New reads for the first time; an error of that is returned. failed is told of later ones.
func New[T any](read func() (T, error), failed func(error), paths ...string) (*File[T], error) {
	f := &File[T]{paths: paths, read: read, failed: failed, stamp: stamp(paths)}
	var err error
	f.value, err = read()
	return f, err
}

// Get is what they say now. A change that cannot be read leaves in force what was before: half-written files mend
// themselves.
func (f *File[T]) Get() T {
	f.lock.Lock()
	defer f.lock.Unlock()
	if now := stamp(f.paths); now != f.stamp {
		f.stamp = now
		if next, err := f.read(); err != nil {
			f.failed(err)
		} else {
			f.value = next
		}
	}
	return f.value
}

// stamp changes with a file's content, whether it is written in place or replaced (Kubernetes moves a link).
func stamp(paths []string) string {
	var s strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			inode := uint64(0)
			if raw, is := info.Sys().(*syscall.Stat_t); is {
				inode = raw.Ino
			}
			fmt.Fprint(&s, info.ModTime().UnixNano(), info.Size(), inode)
		}
		s.WriteByte(' ')
	}
	return s.String()
}
