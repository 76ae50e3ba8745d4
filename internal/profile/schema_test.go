package profile

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/schemas"
)

// semanticOnly are the constraints that the parser alone holds. Each says whether a
// document that the schema accepts breaks it. Whatever the parser refuses and the schema
// accepts must be one of these.
var semanticOnly = map[string]func(d map[string]any) bool{
	"one mapping value means accepted": func(d map[string]any) bool {
		mapping, _ := look(d, "callback/acknowledgement/disposition/mapping").(map[string]any)
		for _, v := range mapping {
			if v == OutcomeAccepted {
				return false
			}
		}
		return true
	},
	"the id pointers differ": func(d map[string]any) bool {
		return look(d, "callback/acknowledgement/acknowledgedDeliveryId/jsonPointer") == look(d, "callback/acknowledgement/acknowledgedMessageId/jsonPointer")
	},
	"the executable path is normalised and no shell": func(d map[string]any) bool {
		path, _ := look(d, "callback/executable").(string)
		base := strings.ToLower(filepath.Base(path))
		return filepath.Clean(path) != path || base == "sh" || base == "env" || base == "powershell.exe"
	},
	"the arguments together are bounded": func(d map[string]any) bool {
		args, _ := look(d, "callback/arguments").([]any)
		total := 0
		for _, a := range args {
			total += len([]rune(a.(string)))
		}
		return total > 16384
	},
	"no Unicode blank at an end": func(d map[string]any) bool {
		for _, path := range []string{"callback/executable", "callback/acknowledgement/acceptanceId/jsonPointer", "callback/acknowledgement/disposition/jsonPointer",
			"callback/acknowledgement/acknowledgedDeliveryId/jsonPointer", "callback/acknowledgement/acknowledgedMessageId/jsonPointer"} {
			if s, _ := look(d, path).(string); strings.TrimSpace(s) != s {
				return true
			}
		}
		return false
	},
	"SemVer numbers fit 64 bits": func(d map[string]any) bool {
		text, _ := look(d, "compatibility/range").(string)
		return strings.Contains(text, "99999999999999999999")
	},
}

func look(d any, path string) any {
	for name := range strings.SplitSeq(path, "/") {
		m, _ := d.(map[string]any)
		d = m[name]
	}
	return d
}

func resolvedSchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(schemas.HostProfileV1), &s); err != nil {
		t.Fatal(err)
	}
	if s.ID != SchemaURL {
		t.Errorf("$id is %q, want the URL that Profiles name, %q", s.ID, SchemaURL)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// paths are all members of the starter, and the optional ones.
var paths = []string{"$schema", "schema", "version", "id", "revision", "compatibility", "compatibility/host", "compatibility/range",
	"controllerContext", "controllerContext/driver", "controllerContext/sessionIdVariable", "controllerContext/scope",
	"callback", "callback/driver", "callback/executable", "callback/arguments", "callback/arguments/0", "callback/arguments/3", "callback/arguments/11", "callback/stdin",
	"callback/environment", "callback/environment/allow", "callback/environment/allow/0", "callback/timeoutMs", "callback/maxOutputBytes",
	"callback/acknowledgement", "callback/acknowledgement/disposition", "callback/acknowledgement/disposition/jsonPointer",
	"callback/acknowledgement/disposition/mapping", "callback/acknowledgement/disposition/mapping/retry", "callback/acknowledgement/disposition/mapping/new",
	"callback/acknowledgement/acceptanceId", "callback/acknowledgement/acceptanceId/jsonPointer",
	"callback/acknowledgement/acknowledgedDeliveryId/jsonPointer", "callback/acknowledgement/acknowledgedMessageId/jsonPointer"}

// words are whole values that sit at some edge of some rule.
var words = []string{"", " ", "a", "A", "my-agent", "builtin-x", "builtin", SchemaURL, SchemaName, DriverEnvironment, DriverCommandJSON, ScopeStartup, ScopeRouteBound,
	PlaceholderBody, PlaceholderSession, PlaceholderMessage, PlaceholderDelivery + PlaceholderIdempotencyKey, "&" + PlaceholderSession + "&", "&&", "a&b", "$", "${", "$HOME", "${envelope",
	"/", "/a", "/a/", "/a b", "/a ", "/a\u2003", "/a/../b", "/a//b", "/bin/sh", "/usr/bin/env", "/x/PowerShell.exe", "/~0~1", "/~2", "/a~", "//",
	strings.Repeat("/a", 16), strings.Repeat("/a", 17), "/request/delivery_id", "/a\u0085",
	"PATH", "path", "_", "LD_PRELOAD", "DYLD_X", "DYLD", "AKK_HOST_PROFILE_X", "ENV", "ENVX",
	"1.8.0", "=1.8.0", ">=1.8.0 <2.0.0", ">=1.8.0  <2.0.0", "^1.8.0", "v1.8.0", "1.8", "1.8.0-rc.1+b.2", "1.8.0-01", "1.8.0+01", "1.0.0 1.0.0 1.0.0 1.0.0", "1.0.0 1.0.0 1.0.0 1.0.0 1.0.0",
	"1.0.99999999999999999999", ">=1.0.0 ||<2.0.0", "1.0.0-", "1.0.0+", "1.0.0-a..b", "01.0.0", ">= 1.0.0",
	OutcomeAccepted, OutcomeUncertain, "later", "a\x00", "a\nb", "a\tb", "a\u2028b", "é", "😀"}

// edges are values just inside and just outside the limits of one member.
var edges = map[string][]any{
	"id":                         {strings.Repeat("a", 64), strings.Repeat("a", 65)},
	"revision":                   {strings.Repeat("1", 128), strings.Repeat("1", 129)},
	"compatibility/range":        {"1.0.0+" + strings.Repeat("a", 250), "1.0.0+" + strings.Repeat("a", 251), "1.0.0 1.0.0+" + strings.Repeat("a", 244), "1.0.0 1.0.0+" + strings.Repeat("a", 245)},
	"callback/executable":        {"/" + strings.Repeat("é", 4095), "/" + strings.Repeat("é", 4096)},
	"callback/arguments":         {withArgs(names(61)...), withArgs(names(62)...), withArgs(strings.Repeat("é", 4096)), withArgs(strings.Repeat("é", 4097)), names(3)},
	"callback/environment/allow": {names(32), names(33), append(names(2), "V1"), names(0)},
	"callback/timeoutMs":         {1, 30000, 30001, 0}, "callback/maxOutputBytes": {1, 1048576, 1048577, 0},
	"callback/acknowledgement/acceptanceId/jsonPointer": {"/" + strings.Repeat("a", 255), "/" + strings.Repeat("a", 256), strings.Repeat("/a", 16), strings.Repeat("/", 17)},
	"callback/acknowledgement/disposition/mapping":      {mapped(1, 1), mapped(16, 1), mapped(17, 1), mapped(2, 64), mapped(2, 65), map[string]any{}},
	"controllerContext/sessionIdVariable":               {strings.Repeat("A", 128), strings.Repeat("A", 129)},
}

func names(n int) []any { return repeated(n, func(i int) string { return fmt.Sprintf("V%d", i) }) }

func mapped(n, keyLength int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("%c%s", 'a'+i, strings.Repeat("k", keyLength-1))] = OutcomeAccepted
	}
	return m
}

func values() *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.SampledFrom(words),
		rapid.StringOfN(rapid.RuneFrom([]rune("aZ09._:-/~ $&;{}|<>`\x00\n\u00a0é=v")), 0, 12, -1),
		rapid.Custom(func(t *rapid.T) string {
			unit := rapid.SampledFrom([]string{"a", "A", "/a", "é", "1"}).Draw(t, "unit")
			n := rapid.SampledFrom([]int{16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1024, 4095, 4096, 4097}).Draw(t, "n")
			return rapid.SampledFrom([]string{"", "/"}).Draw(t, "head") + strings.Repeat(unit, n)
		}),
	)
	scalar := rapid.OneOf(
		rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.SampledFrom([]float64{-1, 0, 1, 1.5, 2, 30000, 30001, 1048576, 1048577, 1e300}), func(f float64) any { return f }),
		rapid.SampledFrom([]any{nil, true, absent{}}),
	)
	list := rapid.Custom(func(t *rapid.T) any {
		n := rapid.SampledFrom([]int{0, 1, 4, 16, 31, 32, 33, 61, 62, 64, 65}).Draw(t, "items")
		return append(names(n), rapid.SliceOfN(rapid.Map(text, func(s string) any { return s }), 0, 5).Draw(t, "tail")...)
	})
	arguments := rapid.Custom(func(t *rapid.T) any {
		return withArgs(rapid.SliceOfN(rapid.Map(text, func(s string) any { return s }), 0, 6).Draw(t, "more")...)
	})
	object := rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{}
		for k, v := range rapid.MapOfN(text, rapid.SampledFrom([]any{OutcomeAccepted, OutcomeUncertain, "x", 1.0, nil}), 0, 18).Draw(t, "members") {
			m[k] = v
		}
		return m
	})
	return rapid.OneOf(scalar, scalar, list, arguments, object)
}

func TestTheSchemaAndTheParserRefuseTheSameStructures(t *testing.T) {
	schema := resolvedSchema(t)
	rapid.Check(t, func(rt *rapid.T) {
		edits := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(rt, "edits") {
			path := rapid.SampledFrom(paths).Draw(rt, "path")
			if strings.HasSuffix(path, "/0") || strings.HasSuffix(path, "/3") || strings.HasSuffix(path, "/11") {
				edits[path] = rapid.SampledFrom(words).Draw(rt, "item")
				continue
			}
			edits[path] = values().Draw(rt, "value")
			if at := edges[path]; at != nil && rapid.Bool().Draw(rt, "at an edge") {
				edits[path] = rapid.SampledFrom(at).Draw(rt, "edge")
			}
		}
		if rapid.IntRange(0, 9).Draw(rt, "extra field") == 0 {
			edits[rapid.SampledFrom([]string{"x", "ID", "compatibility/x", "callback/environment/Allow", "callback/acknowledgement/acceptanceId/x"}).Draw(rt, "field")] = "x"
		}
		if differ := compare(t, schema, edits); differ != "" {
			rt.Fatal(differ)
		}
	})
}

func TestTheSchemaAndTheParserAgreeAtEveryEdge(t *testing.T) {
	schema := resolvedSchema(t)
	for path, at := range edges {
		for _, value := range at {
			if differ := compare(t, schema, map[string]any{path: value}); differ != "" {
				t.Errorf("%s: %.600s", path, differ)
			}
		}
	}
}

// compare says how the two sides differ on one edited document, or "".
func compare(t *testing.T, schema *jsonschema.Resolved, edits map[string]any) string {
	data := editedLoosely(t, edits)
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	schemaErr := schema.Validate(doc)
	_, parseErr := Parse(data)
	switch {
	case parseErr == nil && schemaErr != nil:
		return fmt.Sprintf("the parser accepts what the schema refuses: %v\n%s", schemaErr, data)
	case parseErr != nil && schemaErr == nil:
		for _, broken := range semanticOnly {
			if broken(doc) {
				return ""
			}
		}
		return fmt.Sprintf("the schema accepts what the parser refuses, and no semantic rule says why: %v\n%s", parseErr, data)
	}
	return ""
}

// editedLoosely is edited, but an edit below a member that another edit replaced by a
// scalar is dropped.
func editedLoosely(t *testing.T, edits map[string]any) []byte {
	keep := map[string]any{}
	for path, value := range edits {
		below := false
		for other := range edits {
			below = below || strings.HasPrefix(path, other+"/")
		}
		if !below {
			keep[path] = value
		}
	}
	return edited(t, keep)
}

func TestEachSemanticRuleIsTheParsersAlone(t *testing.T) {
	schema := resolvedSchema(t)
	long := strings.Repeat("a", 4096)
	examples := map[string]map[string]any{
		"one mapping value means accepted":               {"callback/acknowledgement/disposition/mapping": map[string]any{"a": OutcomeUncertain}},
		"the id pointers differ":                         {"callback/acknowledgement/acknowledgedMessageId/jsonPointer": "/request/delivery_id"},
		"the executable path is normalised and no shell": {"callback/executable": "/bin/sh"},
		"the arguments together are bounded":             {"callback/arguments": withArgs(long, long, long, long)},
		"no Unicode blank at an end":                     {"callback/executable": "/a\u2003"},
		"SemVer numbers fit 64 bits":                     {"compatibility/range": "1.0.99999999999999999999"},
	}
	for name := range semanticOnly {
		var doc map[string]any
		data := edited(t, examples[name])
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if !semanticOnly[name](doc) {
			t.Errorf("%s: the example does not break the rule", name)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: the schema says it too, so it is not semantic only: %v", name, err)
		}
		if _, err := Parse(data); err == nil {
			t.Errorf("%s: the parser accepts it", name)
		}
	}
}

// A schema's integer may be spelled 8000.0; the parser wants one spelling of one value.
func TestAWholeNumberHasOneSpelling(t *testing.T) {
	for _, spelling := range []string{"8000.0", "8e3", "8.0e3"} {
		if _, err := Parse([]byte(strings.Replace(string(Starter()), "8000", spelling, 1))); err == nil {
			t.Errorf("%s is accepted", spelling)
		}
	}
}

func TestTheSchemaIsClosedEverywhereAndTheStarterIsItsExample(t *testing.T) {
	schema := resolvedSchema(t)
	var doc, raw map[string]any
	if err := json.Unmarshal(Starter(), &doc); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("the starter breaks the schema: %v", err)
	}
	if doc["$schema"] != SchemaURL {
		t.Errorf("the starter's $schema is %v", doc["$schema"])
	}
	if err := json.Unmarshal([]byte(schemas.HostProfileV1), &raw); err != nil {
		t.Fatal(err)
	}
	if raw["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("the draft is %v", raw["$schema"])
	}
	closed(t, "#", raw)
}

// closed finds object schemas that would let an unknown member in.
func closed(t *testing.T, at string, node any) {
	switch node := node.(type) {
	case map[string]any:
		if node["type"] == "object" && node["additionalProperties"] == nil {
			t.Errorf("%s is an open object", at)
		}
		for name, child := range node {
			closed(t, at+"/"+name, child)
		}
	case []any:
		for i, child := range node {
			closed(t, fmt.Sprintf("%s/%d", at, i), child)
		}
	}
}

// Whatever Parse accepts, the schema accepts, and the Profile written out again is the
// same Profile with the same fingerprint.
func FuzzParse(f *testing.F) {
	schema := resolvedSchema(f)
	f.Add(Starter())
	for path, at := range edges {
		f.Add(edited(f, map[string]any{path: at[0]}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		if err != nil {
			return
		}
		var doc map[string]any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Fatalf("the schema refuses what the parser accepts: %v", err)
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Parse(again)
		if err != nil || fingerprint(t, p) != fingerprint(t, q) {
			t.Fatalf("not the same Profile when written out: %v", err)
		}
	})
}
