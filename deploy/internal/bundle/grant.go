package bundle

import (
	"fmt"
	"regexp"
	"strings"
)

// Fleet is the scope that has every AP in it.
const Fleet = "fleet"

// scopePattern is what a key's scope looks like.
var scopePattern = regexp.MustCompile(`^(fleet|(site|ap)/[A-Za-z0-9][A-Za-z0-9._-]{0,63})$`)

// lineNeeds is what a line of trusted keys has after the name.
const lineNeeds = "role=registry|trainer|operator scope=fleet|site/SITE|ap/AP_ID max_mode=off|shadow|enforce"

// Grant is what a key may sign. The zero value is that of an older line without attributes: nothing.
type Grant struct {
	Role    string
	Sources []Source // of bundles that it may sign
	Scope   string   // nothing outside it
	MaxMode Mode     // no policy above it
}

var roles = map[string][]Source{"registry": {Registry}, "trainer": {Online}, "operator": {Registry}}

// String is what a line says of it.
func (g *Grant) String() string {
	return fmt.Sprintf("role=%s scope=%s max_mode=%s", g.Role, g.Scope, g.MaxMode)
}

// parseGrant reads the attributes of a line, in any order, each once.
func parseGrant(words []string) (g Grant, err error) {
	given := map[string]string{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if name != "role" && name != "scope" && name != "max_mode" {
			return g, fmt.Errorf("attribute %s; a line has %s", word, lineNeeds)
		}
		if _, twice := given[name]; twice {
			return g, fmt.Errorf("%s is there twice", name)
		}
		given[name] = value
	}
	for _, name := range []string{"role", "scope", "max_mode"} {
		if _, there := given[name]; !there {
			return g, fmt.Errorf("%s is missing; a line has %s", name, lineNeeds)
		}
	}
	g = Grant{Role: given["role"], Sources: roles[given["role"]], Scope: given["scope"]}
	known := false
	for _, mode := range []Mode{Off, Shadow, Enforce} {
		if mode.String() == given["max_mode"] {
			g.MaxMode, known = mode, true
		}
	}
	switch {
	case g.Sources == nil:
		return g, fmt.Errorf("role=%s; it is registry, trainer or operator", g.Role)
	case !scopePattern.MatchString(g.Scope):
		return g, fmt.Errorf("scope=%s; it is fleet, site/SITE or ap/AP_ID", g.Scope)
	case !known:
		return g, fmt.Errorf("max_mode=%s; it is off, shadow or enforce", given["max_mode"])
	case g.Role == "operator" && g.Scope == Fleet:
		return g, fmt.Errorf("role=operator needs a scope narrower than fleet")
	}
	return g, nil
}

// refuses says why the key may not sign a bundle, or nothing.
func (k *Key) refuses(b *Bundle) string {
	g := &k.Grant
	signs := false
	for _, source := range g.Sources {
		signs = signs || source == b.Source
	}
	switch {
	case len(g.Sources) == 0:
		return fmt.Sprintf("key %s may sign nothing: its line lacks %s", k.Name, lineNeeds)
	case !signs:
		return fmt.Sprintf("key %s: role %s may not sign source %s", k.Name, g.Role, b.Source)
	case !covers(g.Scope, b.Target):
		return fmt.Sprintf("key %s: its scope is %s, the bundle is for %s", k.Name, g.Scope, b.Target)
	case b.Mode > g.MaxMode:
		return fmt.Sprintf("key %s: a policy of mode %s is above its max_mode=%s", k.Name, b.Mode, g.MaxMode)
	}
	return ""
}

// covers says whether a key of this scope may sign for a target, as far as that can be said without knowing who is at
// a site: Reaches checks that, for each AP.
func covers(scope, target string) bool {
	return scope == Fleet || scope == target || strings.HasPrefix(scope, "site/") && strings.HasPrefix(target, "ap/")
}

// Reaches says whether an AP is inside the scope of the key that signed the bundle. An AP whose site is not known is
// at none.
func (b *Bundle) Reaches(ap, site string) bool {
	return b.KeyScope == Fleet || b.KeyScope == "ap/"+ap || site != "" && b.KeyScope == "site/"+site
}
