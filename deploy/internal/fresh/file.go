// Package fresh keeps what files say, and reads them again when they changed: keys, certificates and users are renewed
// without a restart.
package fresh

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

// File is what one file, or several that belong together, say.
type File[T any] struct {
	paths  []string
	read   func() (T, error)
	failed func(error)

	now     atomic.Pointer[version[T]]
	looking atomic.Bool // one caller checks whether they changed; the others need not wait for the disk
}

// version is what the files said at one time; it is never changed.
type version[T any] struct {
	stamp string
	value T
}

// New reads for the first time; an error of that is returned. failed is called for later ones.
func New[T any](read func() (T, error), failed func(error), paths ...string) (*File[T], error) {
	f := &File[T]{paths: paths, read: read, failed: failed}
	first := version[T]{stamp: stamp(paths)}
	var err error
	first.value, err = read()
	f.now.Store(&first)
	return f, err
}

// Get is what they say now, or, while another caller checks whether they changed, what they said before. A change that
// cannot be read leaves that in force too: half-written files mend themselves.
func (f *File[T]) Get() T {
	if !f.looking.CompareAndSwap(false, true) {
		return f.now.Load().value
	}
	defer f.looking.Store(false)
	had := f.now.Load()
	next := version[T]{stamp(f.paths), had.value}
	if next.stamp == had.stamp {
		return had.value
	}
	if value, err := f.read(); err != nil {
		f.failed(err)
	} else {
		next.value = value
	}
	f.now.Store(&next)
	return next.value
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
