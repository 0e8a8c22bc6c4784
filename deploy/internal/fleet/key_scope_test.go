package fleet

import (
	"testing"

	"oal/deploy/internal/release"
)

// Only here is it known at which site an AP is: a release for an AP by a site's key is for nobody of another site, nor
// for one whose site is not known, and what stood behind it stays.
func TestAKeysScopeIsKept(t *testing.T) {
	f, _ := fixture()
	champion := made(release.Champion, "fleet", 10)
	forged := made(release.Champion, "ap/a", 20)
	forged.Bundle.KeyScope = "site/elsewhere"
	offer(f, all(champion), all(forged))
	if got := desired(f, "a", nil); got != 10 {
		t.Errorf("a release by the key of another site: %d", got)
	}
	forged.Bundle.KeyScope = "site/lab"
	offer(f, all(champion), all(forged))
	if got := desired(f, "a", nil); got != 20 {
		t.Errorf("a release by the key of its site: %d", got)
	}
	if (&AP{ID: "a"}).Site != "" || reaches(&AP{ID: "a"}, forged) || reaches(&AP{ID: "b", Site: ""}, forged) {
		t.Error("an AP whose site is not known is at none")
	}
	tree := made(release.Online, "ap/a", 30)
	for scope, want := range map[string]int64{"site/elsewhere": 20, "ap/b": 20, "": 20, "ap/a": 30, "fleet": 30} {
		tree.Bundle.KeyScope = scope
		f.SetOnline("a", tree)
		if got := desired(f, "a", nil); got != want {
			t.Errorf("an online tree by a key of scope %q: %d, want %d", scope, got, want)
		}
	}
	variant := made(release.Champion, "site/lab", 40)
	variant.VariantOf, variant.Bundle.KeyScope = champion.Bundle.Hash, "site/elsewhere"
	f.SetOnline("a", nil)
	offer(f, all(champion), all(variant))
	if got := desired(f, "a", nil); got != 10 {
		t.Errorf("a variant that the AP would refuse hides nothing: %d", got)
	}
}
