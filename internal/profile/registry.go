package profile

import (
	"slices"
	"strings"

	hostprofiles "github.com/agent-knock-knock/akk/examples/host-profiles"
)

// builtinPrefix is reserved for Profiles that ship with the product.
const builtinPrefix = "builtin-"

// Entry is one row of the built-in registry.
type Entry struct {
	Source        string        `json:"source"` // always SourceBuiltIn
	ID            string        `json:"id"`
	Revision      string        `json:"revision"`
	Fingerprint   string        `json:"fingerprint"`
	Compatibility Compatibility `json:"compatibility"`
}

// builtin is one reviewed Profile: its reserved id and its document.
type builtin struct {
	id       string
	document string
}

type registry []builtin

// builtins is empty: no Profile is bundled yet. A row is added only with a review of the
// Host that it names.
var builtins = registry{}

func (r registry) find(id string) *builtin {
	if i := slices.IndexFunc(r, func(b builtin) bool { return b.id == id }); i >= 0 {
		return &r[i]
	}
	return nil
}

// Builtins lists the built-in Profiles by id. The list is empty, never nil.
func Builtins() ([]Entry, error) { return builtins.entries() }

func (r registry) entries() ([]Entry, error) {
	list := make([]Entry, 0, len(r))
	for _, b := range r {
		loaded, err := r.loadBuiltin(&b)
		if err != nil {
			return nil, err
		}
		p := loaded.Profile
		list = append(list, Entry{Source: SourceBuiltIn, ID: p.ID, Revision: p.Revision, Fingerprint: loaded.Fingerprint, Compatibility: p.Compatibility})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// Starter returns the packaged starter Profile, byte for byte the file
// examples/host-profiles/command-json-starter.json.
func Starter() []byte { return []byte(hostprofiles.CommandJSONStarter) }
