package strictjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/strictjson"
)

type inner struct {
	Count int      `json:"count"`
	Names []string `json:"names"`
}

type base struct {
	Kind string `json:"kind"`
}

type document struct {
	base
	ID     string           `json:"id"`
	Inner  inner            `json:"inner"`
	Extra  map[string]inner `json:"extra"`
	Raw    json.RawMessage  `json:"raw"`
	Any    any              `json:"any"`
	Opt    *string          `json:"opt"`
	Flag   bool             `json:"flag"`
	Ratio  float64          `json:"ratio"`
	Pair   [2]int           `json:"pair"`
	Blob   []byte           `json:"blob"`
	Number json.Number      `json:"number"`
	Small  uint8            `json:"small"`
	Hidden string           `json:"-"`
}

func TestAWholeDocumentDecodes(t *testing.T) {
	var d document
	err := strictjson.Decode([]byte(` {"kind":"k","id":"a\u00e9\ud83d\ude00","inner":{"count":3,"names":["x","y"]},
		"extra":{"any key":{"count":1}},"raw":{"a":[1,null]},"any":null,"opt":"o","flag":true,"ratio":1.5e3,
		"pair":[1,2],"blob":"AQI=","number":12345678901234567890,"small":255} `), &d, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind != "k" || d.ID != "aé😀" || d.Inner.Count != 3 || d.Extra["any key"].Count != 1 || string(d.Raw) != `{"a":[1,null]}` ||
		*d.Opt != "o" || !d.Flag || d.Ratio != 1500 || d.Pair != [2]int{1, 2} || len(d.Blob) != 2 || d.Number != "12345678901234567890" || d.Small != 255 {
		t.Fatalf("decoded %+v", d)
	}
}

func TestEveryRefusalNamesThePathAndTheRuleAndNeverTheValue(t *testing.T) {
	const secret = "s3cr3tvalue"
	cases := []struct{ name, doc, path, rule string }{
		{"unknown field at the root", `{"idx":"s3cr3tvalue"}`, "$.idx:", "not a known field"},
		{"unknown field below", `{"inner":{"count":1,"cuont":"s3cr3tvalue"}}`, "$.inner.cuont:", "not a known field"},
		{"unknown field in a map's value", `{"extra":{"a b":{"z":1}}}`, `$.extra["a b"].z:`, "not a known field"},
		{"another letter case", `{"ID":"s3cr3tvalue"}`, "$.ID:", "not a known field"},
		{"a hidden field", `{"Hidden":"s3cr3tvalue"}`, "$.Hidden:", "not a known field"},
		{"duplicate key", `{"id":"a","id":"s3cr3tvalue"}`, "$.id:", "given twice"},
		{"duplicate key spelled with an escape", `{"id":"a","\u0069d":"b"}`, "$.id:", "given twice"},
		{"duplicate key where anything is welcome", `{"any":[{"x":1,"x":2}]}`, "$.any[0].x:", "given twice"},
		{"duplicate key in raw JSON", `{"raw":{"x":{"y":1,"y":1}}}`, "$.raw.x.y:", "given twice"},
		{"string for a number", `{"inner":{"count":"s3cr3tvalue"}}`, "$.inner.count:", "whole number, not a string"},
		{"number for a string", `{"inner":{"names":["a",7]}}`, "$.inner.names[1]:", "a string, not a number"},
		{"fraction for a whole number", `{"inner":{"count":1.5}}`, "$.inner.count:", "whole number in range"},
		{"too big for its type", `{"small":256}`, "$.small:", "in range"},
		{"negative for unsigned", `{"small":-1}`, "$.small:", "in range"},
		{"object for a string", `{"id":{}}`, "$.id:", "a string, not an object"},
		{"array for an object", `{"inner":[]}`, "$.inner:", "an object, not an array"},
		{"object for an array", `{"inner":{"names":{}}}`, "$.inner.names:", "an array, not an object"},
		{"string for a boolean", `{"flag":"true"}`, "$.flag:", "a boolean, not a string"},
		{"boolean for a string", `{"id":true}`, "$.id:", "a string, not a boolean"},
		{"string for a json.Number", `{"number":"1"}`, "$.number:", "a number, not a string"},
		{"number for a boolean", `{"flag":1}`, "$.flag:", "a boolean, not a number"},
		{"float out of range", `{"ratio":1e999}`, "$.ratio:", "a number in range"},
		{"fixed array too long", `{"pair":[1,2,3]}`, "$.pair:", "exactly 2 items"},
		{"bytes that are no base64", `{"blob":"s3cr3tvalue!"}`, "$", "not allowed here"},
		{"null for a string", `{"id":null}`, "$.id:", "not be null"},
		{"null for a pointer", `{"opt":null}`, "$.opt:", "not be null"},
		{"null for a list", `{"inner":{"names":null}}`, "$.inner.names:", "not be null"},
		{"null document", `null`, "$:", "not be null"},
		{"lone high surrogate", `{"id":"\ud800 s3cr3tvalue"}`, "$.id:", "lone surrogate"},
		{"high surrogate at the end", `{"id":"\ud800"}`, "$.id:", "lone surrogate"},
		{"two high surrogates", `{"id":"\ud800\ud800\udc00"}`, "$.id:", "lone surrogate"},
		{"lone low surrogate in a key", `{"any":{"\udc00":1}}`, "$.any.(key):", "lone surrogate"},
		{"trailing text", `{"id":"a"} s3cr3tvalue`, "$:", "data after the document"},
		{"two documents", "{}\n{}", "$:", "data after the document"},
		{"cut short", `{"id":"a"`, "$:", "ends too early"},
		{"no JSON", "{\n  \"id\": s3cr3tvalue}", "$:", "line 2, column 9"},
		{"comment", "// x\n{}", "$:", "not valid JSON"},
		{"empty", "  \n", "$:", "is empty"},
		{"byte order mark", "\xef\xbb\xbf{}", "$:", "byte order mark"},
		{"invalid UTF-8", "{\"id\":\"\xff\"}", "$:", "not valid UTF-8"},
		{"control character in a key", "{\"a\\u001b[31m\":1}", `$["a\x1b[31m"]:`, "not a known field"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := strictjson.Decode([]byte(c.doc), new(document), strictjson.Limits{})
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("code %q, error %v", fault.CodeOf(err), err)
			}
			_, msg, _ := fault.Public(err)
			if !strings.HasPrefix(msg, c.path) || !strings.Contains(msg, c.rule) {
				t.Errorf("message %q lacks path %q or rule %q", msg, c.path, c.rule)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("message shows the value: %q", err)
			}
		})
	}
}

func TestLimitsHoldExactly(t *testing.T) {
	decode := func(doc string, lim strictjson.Limits) error {
		var v any
		return strictjson.Decode([]byte(doc), &v, lim)
	}
	cases := []struct {
		name, inside, outside string
		lim                   strictjson.Limits
	}{
		{"bytes", `"12345678"`, `"123456789"`, strictjson.Limits{MaxBytes: 10}},
		{"depth", `{"a":[1]}`, `{"a":[[]]}`, strictjson.Limits{MaxDepth: 2}},
		{"string", `["abc"]`, `["abcd"]`, strictjson.Limits{MaxStringBytes: 3}},
		{"key", `{"abc":1}`, `{"abcd":1}`, strictjson.Limits{MaxStringBytes: 3}},
		{"decoded, not escaped, length", `"\u0061\u0061\u0061"`, `"\u00e9\u00e9"`, strictjson.Limits{MaxStringBytes: 3}},
		{"default depth", strings.Repeat("[", 32) + strings.Repeat("]", 32), strings.Repeat("[", 33) + strings.Repeat("]", 33), strictjson.Limits{}},
		{"depth that nobody may exceed", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat("[", 1001) + strings.Repeat("]", 1001), strictjson.Limits{MaxDepth: 1 << 30}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := decode(c.inside, c.lim); err != nil {
				t.Errorf("inside the limit: %v", err)
			}
			if err := decode(c.outside, c.lim); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("outside the limit: %v", err)
			}
		})
	}
}

func TestAllowNullReachesPointersSlicesAndMapsOnly(t *testing.T) {
	lim := strictjson.Limits{AllowNull: true}
	if err := strictjson.Decode([]byte(`{"opt":null,"extra":null,"inner":{"names":null}}`), new(document), lim); err != nil {
		t.Fatal(err)
	}
	if err := strictjson.Decode([]byte(`{"id":null}`), new(document), lim); fault.CodeOf(err) != fault.Invalid {
		t.Fatalf("null for a string: %v", err)
	}
}

func TestATargetThatCannotBeFilledIsAProgrammingError(t *testing.T) {
	for _, v := range []any{nil, document{}, (*document)(nil)} {
		if err := strictjson.Decode([]byte(`{}`), v, strictjson.Limits{}); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%T: %v", v, err)
		}
	}
}

func TestCanonicalSortsKeysAndKeepsNumbersAndText(t *testing.T) {
	got, err := strictjson.Canonical(json.RawMessage(" {\"b\" : [1.0, 1e2, true, null], \"a\": \"<&>\\u2028\\u0007\\n\\\"\", \"B\": {}, \"c\": []}"))
	if err != nil {
		t.Fatal(err)
	}
	want := "{\"B\":{},\"a\":\"<&>\u2028\\u0007\\n\\\"\",\"b\":[1.0,1e2,true,null],\"c\":[]}"
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	var back any
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
}

func TestHashIsOfTheCanonicalText(t *testing.T) {
	a, err := strictjson.Hash(map[string]any{"x": 1, "a": []string{"q"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := strictjson.Hash(json.RawMessage(`{ "a": ["q"], "x": 1 }`))
	if err != nil {
		t.Fatal(err)
	}
	// printf '{"a":["q"],"x":1}' | sha256sum
	const want = "sha256:3c37d8cbfe5c92227e59876511f05ec0cae17a781989c11b403e5200ae60864a"
	if a != want || b != want {
		t.Fatalf("%s and %s, want %s", a, b, want)
	}
	if _, err := strictjson.Hash(func() {}); err == nil {
		t.Fatal("a function has no hash")
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"id":"a","inner":{"count":1,"names":["\ud83d\ude00"]}}`, `{"any":{"x":[null,1e9]}}`, `{"id":"\ud800"}`, `[1,`, "\xef\xbb\xbf{}", `{"id":1}{}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, target := range []any{new(document), new(any), new(map[string]any), new([]inner), new(int), new(string)} {
			err := strictjson.Decode(data, target, strictjson.Limits{})
			if err == nil {
				if again := json.Unmarshal(data, target); again != nil {
					t.Fatalf("accepted what encoding/json refuses: %v", again)
				}
				continue
			}
			var coded *fault.Error
			if !errors.As(err, &coded) || coded.Code != fault.Invalid || strings.ContainsAny(coded.Msg, "\n\r\x1b") {
				t.Fatalf("refusal is not one coded line: %q", err)
			}
		}
		if json.Valid(data) {
			first, err := strictjson.Canonical(json.RawMessage(data))
			if err != nil {
				return // deeper than encoding/json goes
			}
			second, err := strictjson.Canonical(json.RawMessage(first))
			if err != nil || string(first) != string(second) {
				t.Fatalf("canonical text is not stable: %q then %q (%v)", first, second, err)
			}
		}
	})
}
