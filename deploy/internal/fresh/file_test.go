package fresh

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
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
