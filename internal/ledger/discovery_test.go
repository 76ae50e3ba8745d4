package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/ledger"
)

// Case 55: who must decide between two files is told both, however long their paths are.
func TestASkillThatIsFoundTwiceNamesBothPathsWhole(t *testing.T) {
	one, two := strings.Repeat("deep/", 60)+"one/SKILL.md", strings.Repeat("deep/", 60)+"two/SKILL.md"
	got := ledger.MergeSkills("p", nil, []ledger.FoundSkill{{ID: "s", Title: "S", Path: one}, {ID: "s", Title: "S", Path: two}}, time.Unix(1, 0))
	if len(got) != 1 || got[0].Status != ledger.SkillConflict || len(got[0].Warnings) != 1 || !strings.Contains(got[0].Warnings[0], one) || !strings.Contains(got[0].Warnings[0], two) {
		t.Errorf("%+v", got)
	}
}

// What stands on the disk need not be text; one odd file must not end the discovery.
func TestAFileThatIsNoUnicodeIsASkillAllTheSame(t *testing.T) {
	f := ledger.ReadSkill("caf\xe9", "---\nname: a\xffb\ndescription: \xed\xa0\x80\ncairnline:\n  suggested_tools: [x\xff]\n---\n")
	f.Path = "x/caf\xe9/SKILL.md"
	got := ledger.MergeSkills("p", nil, []ledger.FoundSkill{f}, time.Unix(1, 0))
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	k, err := ledger.CleanSkill(got[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append([]string{k.Title, k.Description, k.Path}, k.SuggestedTools...) {
		if !utf8.ValidString(text) || text == "" {
			t.Errorf("%q", text)
		}
	}
	if k.ID != "caf" || k.Title != "a\uFFFDb" {
		t.Errorf("%+v", k)
	}
}

// §6: an id that normalises to nothing is asked for, and is not nothing.
func TestUnusableSkillIDsAreAskedForAsOneThatNobodyHas(t *testing.T) {
	for _, c := range []struct{ in, want []string }{{nil, nil}, {[]string{" "}, nil}, {[]string{"B", "a"}, []string{"a", "b"}},
		{[]string{"!", "b", "é"}, []string{ledger.Unnamable, "b"}}} {
		if got := ledger.AskedSkills(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q asks for %q, want %q", c.in, got, c.want)
		}
	}
	if ledger.NormalSkill(ledger.Unnamable) != "" {
		t.Error("a skill could have that id")
	}
}
