package fresh

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	reads, failures := 0, 0
	read := func() (string, error) {
		reads++
		text, err := os.ReadFile(path)
		if string(text) == "half" {
			err = errors.New("half")
		}
		return string(text), err
	}
	failed := func(error) { failures++ }
	if _, err := New(read, failed, path); err == nil {
		t.Fatal("a file that is not there was read")
	}
	write("one")
	f, err := New(read, failed, path)
	if err != nil {
		t.Fatal(err)
	}
	reads = 0
	if f.Get() != "one" || f.Get() != "one" || reads != 0 {
		t.Errorf("%d reads of an unchanged file", reads)
	}
	write("two")
	if f.Get() != "two" || reads != 1 {
		t.Errorf("a changed file: %d reads", reads)
	}
	write("half")
	if f.Get() != "two" || f.Get() != "two" || failures != 1 {
		t.Errorf("a file that cannot be read: %d failures", failures)
	}
	if err := os.Remove(path); err != nil || f.Get() != "two" || failures != 2 {
		t.Errorf("a file that has gone: %d failures, %v", failures, err)
	}
	write("three")
	if f.Get() != "three" {
		t.Error("a mended file was not read")
	}
}

// While one reads a file on a disk that hangs, the others have what it said before.
func TestNobodyWaitsForADiskThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangs, reading := make(chan struct{}), make(chan struct{}, 1)
	reads := 0
	f, err := New(func() (int, error) {
		if reads++; reads == 2 {
			reading <- struct{}{}
			<-hangs
		}
		return reads, nil
	}, func(err error) { t.Error(err) }, path)
	if err == nil {
		err = os.WriteFile(path, []byte("two"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	first, second := make(chan int, 1), make(chan int, 1)
	go func() { first <- f.Get() }()
	<-reading
	go func() { second <- f.Get() }()
	select {
	case n := <-second:
		if n != 1 {
			t.Error(n)
		}
	case <-time.After(20 * time.Second):
		t.Error("the second waits for the first")
	}
	close(hangs)
	if n := <-first; n != 2 || f.Get() != 2 {
		t.Error(n, f.Get())
	}
}
