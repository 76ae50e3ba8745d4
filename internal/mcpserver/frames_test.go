package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// drainFrames reads a stream to its end; a long line shows as "LONG:" and its head.
func drainFrames(t testing.TB, r io.Reader, limit int) []string {
	t.Helper()
	f := newFrameReader(r, limit)
	var out []string
	for {
		frame, err := f.next()
		switch {
		case errors.Is(err, errLongFrame):
			out = append(out, "LONG:"+string(frame))
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatal(err)
		default:
			out = append(out, string(frame))
		}
	}
}

func TestFramesAreSplitWhateverTheReadsAre(t *testing.T) {
	long := strings.Repeat("x", 101)
	input := "a\nbb\r\n\n  \n\xef\xbb\xbfc\n" + long + "\n" + strings.Repeat("y", 100) + "\nlast"
	want := []string{"a", "bb", "c", "LONG:" + long, strings.Repeat("y", 100), "last"}
	for name, r := range map[string]io.Reader{
		"at once":      strings.NewReader(input),
		"byte-wise":    iotest.OneByteReader(strings.NewReader(input)),
		"half-wise":    iotest.HalfReader(strings.NewReader(input)),
		"data and EOF": iotest.DataErrReader(strings.NewReader(input)),
	} {
		if got := drainFrames(t, r, 100); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestALongLineWithoutAnEndIsOneError(t *testing.T) {
	for _, size := range []int{readBuffer - 1, readBuffer, readBuffer + 1, 5 * readBuffer} {
		got := drainFrames(t, strings.NewReader(strings.Repeat("z", size)), 10)
		if len(got) != 1 || !strings.HasPrefix(got[0], "LONG:") || len(got[0]) > headBytes+5 {
			t.Errorf("%d bytes gave %d frames", size, len(got))
		}
	}
}

func TestARecoveredIDIsTheTopLevelOne(t *testing.T) {
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0","id":5,"params":{"x":"aaaa`:      "5",
		`{"params":{"id":6},"id":"7","x":[[[`:              `"7"`,
		`{"params":{"id":6},"x":"cut off before the i`:     "",
		`{"id":{"a":1},"method":"x"`:                       "",
		`not json`:                                         "",
		`["id",1]`:                                         "",
		`{"id":` + strings.Repeat("9", maxIDBytes+1) + `,`: "",
	} {
		if got := string(recoverID([]byte(frame))); got != want {
			t.Errorf("%.40s: got %q, want %q", frame, got, want)
		}
	}
}

func TestAnIDIsTheSameHoweverAStringIsEscaped(t *testing.T) {
	if idKey(json.RawMessage(`"a"`)) != idKey(json.RawMessage(`"\u0061"`)) {
		t.Error("two spellings of one string differ")
	}
	for _, other := range []string{`1`, `1.0`, `9007199254740993`, `"n1"`, `""`} {
		if idKey(json.RawMessage(`"1"`)) == idKey(json.RawMessage(other)) {
			t.Errorf(`"1" and %s are one id`, other)
		}
	}
	if idKey(json.RawMessage(`9007199254740992`)) == idKey(json.RawMessage(`9007199254740993`)) {
		t.Error("two large numbers are one id")
	}
}

// FuzzFrames holds the reader and the parser to what a session relies on: no panic, no
// frame above the limit, the same frames however the bytes arrive, ids and params taken
// from the frame byte for byte, and every reply one line of JSON with that id.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"{bad json\n5\nnull\n[]\n", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","id":9,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":31,"method":"ping"} {"jsonrpc":"2.0","id":32,"method":"ping"}`,
		"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}\r\n", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":77,"result":{}}`, "{\"jsonrpc\":\"2.0\",\"id\":9,\x00\"method\":\"ping\"}",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":9,"method":"x","params":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		`{"jsonrpc":"2.0","id":"\ud800","method":"tools/call","params":{"name":"a","arguments":{"b":1},"_meta":{"progressToken":0}}}`,
		`{"id":9007199254740993,"method":"a","jsonrpc":"2.0","params":null,"method":"b"}`, strings.Repeat("long ", 1000),
	} {
		f.Add([]byte(seed))
	}
	const limit = 2048
	f.Fuzz(func(t *testing.T, data []byte) {
		frames := drainFrames(t, bytes.NewReader(data), limit)
		again := drainFrames(t, iotest.OneByteReader(bytes.NewReader(data)), limit)
		if strings.Join(frames, "\n") != strings.Join(again, "\n") {
			t.Fatalf("the split depends on the reads: %q, %q", frames, again)
		}
		for _, frame := range frames {
			if head, long := strings.CutPrefix(frame, "LONG:"); long && len(head) <= headBytes {
				recoverID([]byte(head))
				continue
			}
			if len(frame) > limit {
				t.Fatalf("a frame of %d bytes passed", len(frame))
			}
			e, no := parse([]byte(frame))
			id := e.id
			if no != nil {
				id = no.id
				line := encodeError(no.id, &jsonrpc.Error{Code: no.code, Message: no.reason})
				var back struct {
					ID json.RawMessage `json:"id"`
				}
				if bytes.ContainsAny(line, "\n\r") || json.Unmarshal(line, &back) != nil {
					t.Fatalf("the reply is not one line of JSON: %q", line)
				}
				if no.id != nil && !bytes.Equal(back.ID, no.id) {
					t.Fatalf("id %s came back as %s", no.id, back.ID)
				}
			}
			if id != nil && (!isID(id) || !strings.Contains(frame, string(id))) {
				t.Fatalf("id %q is not from the frame %q", id, frame)
			}
			if no == nil && e.kind == request {
				if !json.Valid([]byte(frame)) || e.method == "" || id == nil {
					t.Fatalf("accepted %q as %+v", frame, e)
				}
				if e.params != nil && (e.params[0] != '{' || !strings.Contains(frame, string(e.params))) {
					t.Fatalf("params %q are not from the frame", e.params)
				}
				call, why := parseToolCall(e.params)
				if why == "" && call.args != nil && !strings.Contains(frame, string(call.args)) {
					t.Fatalf("arguments %q are not from the frame", call.args)
				}
			}
		}
	})
}
