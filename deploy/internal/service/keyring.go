package service

import (
	"os"

	"oal/deploy/internal/bundle"
	"oal/deploy/internal/fresh"
)

// keyring is the file of trusted keys, read again when it changed: keys are rotated without a restart.
type keyring struct{ file *fresh.File[keys] }

type keys struct {
	text string
	keys bundle.Keys
}

func newKeyring(path string, failed func(error)) (*keyring, error) {
	file, err := fresh.New(func() (k keys, err error) {
		if k.keys, err = bundle.ReadKeys(path); err != nil {
			return k, err
		}
		text, err := os.ReadFile(path)
		k.text = string(text)
		return k, err
	}, failed, path)
	return &keyring{file}, err
}

// current are the keys of now; text is the file, for APs.
func (k *keyring) current() bundle.Keys { return k.file.Get().keys }
func (k *keyring) text() string         { return k.file.Get().text }
