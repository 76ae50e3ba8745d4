package profile

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// absent deletes the member that an edit names.
type absent struct{}

// edited returns the starter document with the members at the paths replaced, added or,
// by absent{}, deleted. A path is names joined by a slash; a number is an array index.
func edited(t testing.TB, edits map[string]any) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(Starter(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(edits)) {
		place(t, doc, strings.Split(path, "/"), edits[path])
	}
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func place(t testing.TB, at any, path []string, value any) {
	t.Helper()
	last := len(path) == 1
	switch at := at.(type) {
	case map[string]any:
		switch _, del := value.(absent); {
		case last && del:
			delete(at, path[0])
		case last:
			at[path[0]] = value
		default:
			place(t, at[path[0]], path[1:], value)
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			t.Fatalf("path item %q is no index", path[0])
		}
		if last {
			at[i] = value
			return
		}
		place(t, at[i], path[1:], value)
	default:
		t.Fatalf("path ends too early at %q", path[0])
	}
}

// mustParse parses the starter with edits.
func mustParse(t testing.TB, edits map[string]any) Profile {
	t.Helper()
	p, err := Parse(edited(t, edits))
	if err != nil {
		t.Fatalf("the edited starter %v must parse: %v", edits, err)
	}
	return p
}

// refusal is one edit of the starter that Parse must refuse at a path.
type refusal struct {
	name string
	edit map[string]any
	path string // what the message begins with
}

func checkRefusals(t *testing.T, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(edited(t, c.edit))
			if fault.CodeOf(err) != CodeInvalid {
				t.Fatalf("code %q, error %v", fault.CodeOf(err), err)
			}
			_, msg, hint := fault.Public(err)
			if !strings.HasPrefix(msg, c.path+":") {
				t.Errorf("message %q does not begin with the path %q", msg, c.path)
			}
			if hint == "" || strings.ContainsAny(msg+hint, "\r\n") {
				t.Errorf("a refusal is one line and says what to do next: %q (%q)", msg, hint)
			}
		})
	}
}

func repeated(n int, item func(i int) string) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = item(i)
	}
	return list
}

// withArgs are the three required placeholders and then more.
func withArgs(more ...any) []any {
	return append([]any{PlaceholderSession, PlaceholderDelivery, PlaceholderMessage}, more...)
}
