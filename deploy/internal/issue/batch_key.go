package issue

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const masterBytes = 32 // of a master key, and of the keys derived from it

// Masters are the platform's keys by key_id.
type Masters map[uint8][]byte

// ReadMasters reads a file of lines `KEY_ID BASE64-OF-32-BYTES`; # begins a comment.
func ReadMasters(path string) (Masters, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	masters := Masters{}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		bad := fmt.Errorf("%s:%d: not a master key; a line is: KEY_ID (1 to 255, each once) BASE64-OF-32-BYTES", path,
			i+1)
		if len(words) != 2 {
			return nil, bad
		}
		id, err := strconv.ParseUint(words[0], 10, 8)
		key, err2 := base64.StdEncoding.DecodeString(words[1])
		if err != nil || err2 != nil || id == 0 || len(key) != masterBytes || masters[uint8(id)] != nil {
			return nil, bad
		}
		masters[uint8(id)] = key
	}
	if len(masters) == 0 {
		return nil, fmt.Errorf("%s: no key in it; a line is: KEY_ID BASE64-OF-32-BYTES", path)
	}
	return masters, nil
}

// BatchKey is the key by which the batches of an AP at a site are known to be its own (schema/README.md, "Who made a
// batch"). An empty site is none.
func BatchKey(master []byte, apID, site string) []byte {
	h := hmac.New(sha256.New, master)
	h.Write([]byte("oal batch key v1\x00" + apID + "\x00" + site))
	return h.Sum(nil)
}

// Line is what an AP's file `mac_keys` holds: the key of the newest master.
func (m Masters) Line(apID, site string) string {
	var newest uint8
	for id := range m {
		newest = max(newest, id)
	}
	shown := site
	if shown == "" {
		shown = "-"
	}
	return fmt.Sprintf("%s %s %d %s\n", apID, shown, newest, base64.StdEncoding.EncodeToString(BatchKey(m[newest], apID,
		site)))
}
