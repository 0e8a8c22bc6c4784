package release

import (
	"fmt"
	"strings"

	"oal/deploy/internal/bundle"
)

// Key is a record's key: SLOT/SCOPE of policy rwnd-fair, SLOT/SCOPE/POLICY of any other. An empty policy is rwnd-fair.
func Key(slot Slot, scope, policy string) string {
	key := string(slot) + "/" + scope
	if policy == "" || policy == bundle.RwndFair {
		return key
	}
	return key + "/" + policy
}

// ScopeKind is fleet, site or ap for a scope fleet, site/SITE or ap/AP_ID, and empty for what is none.
func ScopeKind(scope string) string {
	kind, name, named := strings.Cut(scope, "/")
	if scope == "fleet" || (kind == "site" || kind == "ap") && named && Name.MatchString(name) {
		return kind
	}
	return ""
}

// ParseKey splits a record's key and checks its parts. A place has one key: rwnd-fair is never spelled out.
func ParseKey(key string) (slot Slot, scope, policy string, err error) {
	name, rest, _ := strings.Cut(key, "/")
	slot = Slot(name)
	parts, scopeParts := strings.Split(rest, "/"), 2 // site/SITE, ap/AP_ID
	if parts[0] == "fleet" {
		scopeParts = 1
	}
	scopeParts = min(scopeParts, len(parts))
	scope = strings.Join(parts[:scopeParts], "/")
	policy = strings.Join(parts[scopeParts:], "/")
	named := len(parts) > scopeParts
	ok := !named || policy != bundle.RwndFair && bundle.PolicyName.MatchString(policy)
	if !named {
		policy = bundle.RwndFair
	}
	switch slot {
	case Champion, Canary, Challenger:
		ok = ok && ScopeKind(scope) != ""
	case Online:
		ok = ok && ScopeKind(scope) == "ap" && policy == bundle.RwndFair
	default:
		ok = false
	}
	if !ok {
		return "", "", "", fmt.Errorf("`%.120s` is not SLOT/SCOPE or SLOT/SCOPE/POLICY: champion, canary or "+
			"challenger with fleet, site/SITE or ap/AP_ID, and a policy other than rwnd-fair; or online/ap/AP_ID", key)
	}
	return slot, scope, policy, nil
}
