package codex

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent/codex/known"
	"github.com/agent-knock-knock/akk/internal/agent/codex/screen"
	"github.com/agent-knock-knock/akk/internal/turn"
)

// What a Host cannot read whole it cannot approve: an accepted callback counts as a review.
func TestEditsAreApprovableOnlyWhereTheHostIsShownAllOfThem(t *testing.T) { // spec case 51
	m := recordedRequests["edit"]
	change := func(path, diff string) fileChange {
		c := fileChange{Path: path, Diff: diff}
		c.Kind.Type = "update"
		return c
	}
	for name, c := range map[string]struct {
		items      []serverItem
		approvable bool
		detail     string
	}{
		"the item of the request":        {[]serverItem{{ID: "i", Changes: []fileChange{change("/w/a.txt", "@@ -1 +1 @@\n-old\n+new\x1b[2J\n")}}}, true, "update /w/a.txt\n@@ -1 +1 @@\n-old\n+new[2J"},
		"no item":                        {nil, false, ""},
		"another item":                   {[]serverItem{{ID: "j", Changes: []fileChange{change("/w/a.txt", "+new")}}}, false, ""},
		"an item without files":          {[]serverItem{{ID: "i"}}, false, ""},
		"more than can be shown":         {[]serverItem{{ID: "i", Changes: []fileChange{change("/w/a.txt", strings.Repeat("+line\n", screen.MaxExcerpt/6))}}}, false, "update /w/a.txt"},
		"the newest of many of one name": {[]serverItem{{ID: "i", Changes: []fileChange{change("/w/old", "+x")}}, {ID: "i", Changes: []fileChange{change("/w/new", "+y")}}}, true, "update /w/new\n+y"},
	} {
		var e edits
		for _, it := range c.items {
			e.note(it)
		}
		p := requestPrompt(turn.Endpoint{PaneID: "%1"}, m, known.ServerRequests[m.Method])
		e.describe("i", p)
		if p.Approvable != c.approvable || p.Detail != c.detail || (p.Reason == "") != c.approvable {
			t.Errorf("%s: %+v", name, p)
		}
	}
	var e edits
	for range 3 * maxEdits {
		e.note(serverItem{ID: "x"})
	}
	if len(e) != maxEdits {
		t.Errorf("%d items are remembered", len(e))
	}
}

func TestARequestThatIsCutIsNotApprovable(t *testing.T) {
	m := recordedRequests["tool"]
	long := strings.Replace(string(m.Params), `"tool_name"`, `"x":"`+strings.Repeat("y", screen.MaxExcerpt)+`","tool_name"`, 1)
	m.Params = []byte(strings.Replace(long, `"message":"`, `"message":"`+strings.Repeat("z", screen.MaxExcerpt), 1))
	if p := requestPrompt(turn.Endpoint{}, m, known.ServerRequests[m.Method]); p.Approvable || p.Reason != screen.TooLong {
		t.Errorf("%+v", p)
	}
}
