package compaction

import (
	"os"
	"strings"
	"testing"

	"convls/compaction/manifest"
)

// TestDocument holds docs/compaction.md to the code: whoever reads a reason or a rule
// in an error finds it there, and its vectors are ours.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../docs/compaction.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, r := range []Reason{ReasonEmpty, ReasonSkeleton, ReasonCut, ReasonScratch, ReasonInvalid, ReasonUnknownSources, ReasonNotSmaller, ReasonOverBudget} {
		want = append(want, "| `"+string(r)+"` |")
	}
	for _, r := range []manifest.Rule{manifest.RuleShape, manifest.RuleItem, manifest.RuleSources, manifest.RuleQuote, manifest.RuleRole, manifest.RuleGrounds,
		manifest.RuleNegation, manifest.RuleStatus, manifest.RuleIdentity, manifest.RuleKeep, manifest.RuleNarrative} {
		want = append(want, "| `"+string(r)+"` |")
	}
	for _, s := range manifest.Sections() {
		want = append(want, "| `"+string(s)+"` |")
	}
	var all []vector
	vectors(t, &all)
	for _, v := range all {
		if v.Name == "one message" || v.Name == "chained" {
			want = append(want, v.Canonical+"\n"+v.SHA256+"\n")
		}
	}
	for _, w := range want {
		if !strings.Contains(string(doc), w) {
			t.Errorf("docs/compaction.md does not have %q", w)
		}
	}
}
