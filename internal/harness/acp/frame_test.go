package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-knock-knock/akk/internal/fault"
)

func TestLinesAreCutWhateverTheChunks(t *testing.T) {
	const text = "one\r\n\n" + `{"a":"é"}` + "\nlast without an end"
	for name, r := range map[string]io.Reader{
		"whole":          strings.NewReader(text),
		"byte by byte":   iotest.OneByteReader(strings.NewReader(text)),
		"with the error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		l := newLines(r, 100)
		var got []string
		for {
			line, err := l.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			got = append(got, string(line))
		}
		if want := []string{"one", "", `{"a":"é"}`, "last without an end"}; strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestFramesAreToldApart(t *testing.T) {
	for line, want := range map[string]frameKind{
		"":                                    frameBlank,
		" \t":                                 frameBlank,
		"Loaded cached credentials.":          frameStray,
		`{"jsonrpc":"2.0"`:                    frameStray,
		"42":                                  frameOdd,
		`[{"id":1}]`:                          frameOdd,
		"{}":                                  frameOdd,
		`{"jsonrpc":"2.0","params":{}}`:       frameOdd,
		`{"id":1,"method":7}`:                 frameOdd,
		`{"id":1,"method":"m"}`:               frameRequest,
		`{"id":null,"method":"m"}`:            frameRequest,
		`{"method":"m"}`:                      frameNotification,
		`{"id":1}`:                            frameResponse,
		`{"id":null,"error":{"code":-32700}}`: frameResponse,
		`{"id":1,"result":null,"error":null}`: frameResponse,
		`{"id":1,"error":"a string"}`:         frameResponse,
		"{\"method\":\"m\",\"x\":\"\xff\"}":   frameNotification,
	} {
		if got := readFrame([]byte(line)); got.kind != want {
			t.Errorf("%q is kind %d, want %d", line, got.kind, want)
		}
	}
	if e := readFrame([]byte(`{"id":1,"error":"a string"}`)).err; e == nil || e.Code != CodeInternal {
		t.Errorf("got %v", e)
	}
	if f := readFrame([]byte(`{"id":1,"result":null,"error":null}`)); f.err != nil {
		t.Errorf("got %v", f.err)
	}
}

// Whatever an agent writes, every line is one line, no line is longer than the limit, and
// what is read of it is what encoding/json reads.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\nprose\n42\n"), 64)
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","content":[{"type":"diff"}],"locations":[{"line":1.0}]}}}`), 4096)
	f.Add([]byte(`{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"a","currentValue":true,"options":[{"options":[{"value":"x"}]}]}]}}}`), 4096)
	f.Add([]byte("\r\n\n\xff\xfe{\"id\":"), 3)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		limit = min(max(limit, 1), 1<<20)
		l := newLines(iotest.HalfReader(bytes.NewReader(data)), limit)
		for {
			line, err := l.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !fault.Is(err, LineTooLarge) {
					t.Fatal(err)
				}
				return
			}
			if len(line) > limit || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("a line of %d bytes, limit %d", len(line), limit)
			}
			fr := readFrame(line)
			if valid := json.Valid(bytes.TrimSpace(line)); valid == (fr.kind == frameStray) && fr.kind != frameBlank {
				t.Fatalf("%q is valid JSON: %t, and is kind %d", line, valid, fr.kind)
			}
			u := &Update{Raw: asObject(fr.params)["update"]}
			decodeUpdate(u)
			var tr Transcript
			if err := tr.Update(u); err != nil {
				t.Fatal(err)
			}
			tr.Summary()
			decodePrompt(fr.result)
			decodeSession(fr.result)
		}
	})
}
