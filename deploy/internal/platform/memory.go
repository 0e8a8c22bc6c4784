package platform

import (
	"fmt"
	"os"
	"strings"
)

// memory is the resident memory of a process in bytes, and the largest there was.
func memory(pid int) (rss, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int64
		name, value, _ := strings.Cut(line, ":")
		if name != "VmRSS" && name != "VmHWM" {
			continue
		}
		if _, err := fmt.Sscan(value, &kib); err != nil {
			return 0, 0, err
		}
		if name == "VmRSS" {
			rss = kib << 10
		} else {
			peak = kib << 10
		}
	}
	return rss, peak, nil
}
