package fleet

import (
	"fmt"

	"oal/deploy/internal/release"
)

// Kill says that no AP in a scope may clamp anything, whatever its bundle's policy says.
type Kill struct {
	Scope   string `json:"scope"`    // fleet, site/SITE or ap/AP_ID
	Who     string `json:"who"`      // turned it off
	Note    string `json:"note"`     // for whom, if they said
	Reason  string `json:"reason"`   // why
	SinceUS int64  `json:"since_us"` // of the first of several without an unkill between them
}

// Control is what the kill switch says to an AP, as the header OAL-Control has it.
type Control string

const (
	On  Control = "on"  // it may do what its bundle and its own configuration allow
	Off Control = "off" // nothing is to be clamped
)

// CheckScope says what is wrong with the scope of a kill.
func CheckScope(scope string) error {
	if release.ScopeKind(scope) == "" {
		return fmt.Errorf("`%.80s` is no scope: fleet, site/SITE or ap/AP_ID", scope)
	}
	return nil
}

// Knows says whether there is an AP in a scope. The fleet is always there.
func (f *Fleet) Knows(scope string) bool {
	if scope == "fleet" {
		return true
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, a := range f.aps {
		if inScope(&a.AP, scope) {
			return true
		}
	}
	return false
}

// SetKills replaces what is switched off. Every waiting AP to which that is news is woken.
func (f *Fleet) SetKills(kills []Kill) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.kills = make(map[string]bool, len(kills))
	for _, k := range kills {
		f.kills[k.Scope] = true
	}
	for _, a := range f.aps {
		if a.poll != nil && f.control(&a.AP) != a.poll.control {
			a.poll.wakeUp()
		}
	}
}

// control is the state of the kill switch for an AP. The caller holds the lock.
func (f *Fleet) control(a *AP) Control {
	if f.kills["fleet"] || a.Site != "" && f.kills["site/"+a.Site] || f.kills["ap/"+a.ID] {
		return Off
	}
	return On
}

// Control is the state of the kill switch for the AP, and whether that is news to it.
func (f *Fleet) Control(p *Poll) (now Control, news bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	now = f.control(&p.a.AP)
	return now, now != p.control
}

// CountKilled counts the APs to which the kill switch applies, and how many of them are connected and have not said
// that they heard.
func (f *Fleet) CountKilled() (killed, unheard int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, a := range f.aps {
		if f.control(&a.AP) == On {
			continue
		}
		killed++
		if a.Connected && a.Control != Off {
			unheard++
		}
	}
	return killed, unheard
}

// KillCounts are the APs of a scope: those there are, those connected, and those that said they have control off.
type KillCounts struct {
	APs       int `json:"aps"`
	Connected int `json:"connected"`
	Heard     int `json:"heard"` // of the connected
}

// CountKill counts the APs of a scope.
func (f *Fleet) CountKill(scope string) (c KillCounts) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, a := range f.aps {
		if !inScope(&a.AP, scope) {
			continue
		}
		c.APs++
		if a.Connected {
			c.Connected++
			if a.Control == Off {
				c.Heard++
			}
		}
	}
	return c
}
