package sessions

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"sync"
)

var (
	// groupedForm is a code as most logins show it: groups with a hyphen, alone or between
	// words.
	groupedForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s"'(:*])([A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){1,2})(?:$|[\s"'),.*])`)
	})
	// namedForm is one without groups that is called a code.
	namedForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:\b|_)(?i:[a-z]*code)["']?(?:\s*[:=]|\s+is\b:?)?\s*["'*]*([A-Z0-9]{6,10})(?:$|[\s"'),.*])`)
	})
)

// codeIn finds the code that a person enters on the page of a login. It is empty when the line
// has none; an address has none.
func codeIn(line string) string {
	line = urlForm().ReplaceAllString(line, " ")
	for _, form := range []*regexp.Regexp{groupedForm(), namedForm()} {
		if m := form.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

// How much of a notification is looked at.
const (
	notedDepth = 16
	notedWords = 64
)

// loginNotified looks at every text of a notification while a login runs. One that has
// neither a page nor a code is about something else.
func (l *live) loginNotified(params json.RawMessage) {
	if l.login == nil || !l.login.state.InFlight() {
		return
	}
	var v any
	if json.Unmarshal(params, &v) != nil {
		return
	}
	found := words(v, "", notedDepth, nil)
	if !slices.ContainsFunc(found, func(s string) bool { return pageIn(s) != "" || codeIn(s) != "" }) {
		return
	}
	for _, s := range found {
		l.loginSees(s)
	}
}

// words are the texts of a decoded value, each behind its name, in the order of the names.
func words(v any, name string, depth int, found []string) []string {
	if depth == 0 || len(found) >= notedWords {
		return found
	}
	switch v := v.(type) {
	case string:
		if name != "" {
			v = name + ": " + v
		}
		found = append(found, v)
	case []any:
		for _, e := range v {
			found = words(e, name, depth-1, found)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			found = words(v[k], k, depth-1, found)
		}
	}
	return found
}
