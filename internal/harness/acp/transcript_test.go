package acp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/harness/acp"
)

// Case 35: an update of an unknown call makes one; what is not mentioned stays.
func TestToolCallsAreMerged(t *testing.T) {
	inBubble(t, "", acp.Options{}, func(r *rig) {
		r.open(acp.ClientCaps{})
		r.mustPrompt("msg-1", "TOOLS; USAGE; COST; PLAN; THOUGHT hm")
		s := r.transcript("msg-1")
		var got []string
		for _, tool := range s.Tools {
			got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s|%q", tool.ID, tool.Title, tool.Kind, tool.Status, tool.RawInput, tool.Output))
		}
		equalLists(r.t, "tools", got, []string{`call-1|ls|execute|completed|{"command":"ls"}|"a.go\n"`, `call-unseen|seen late||failed||""`})
		equal(r.t, "location", fmt.Sprint(s.Tools[1].Locations), "[{/proj/a.go 3}]")
		equal(r.t, "text", s.Text, "tools done")
		equal(r.t, "thought", s.Thought, "hm")
		equal(r.t, "plan", fmt.Sprint(s.Plan), "[{first high in_progress} {second low pending}]")
		equal(r.t, "context", fmt.Sprint(s.Context.Used, s.Context.Size, string(s.Context.Cost)), `120 1000{"amount":0.25,"currency":"USD"}`)
		usage := await[*acp.Settled](r, 0).Result.Usage
		equal(r.t, "usage", fmt.Sprint(*usage.Input, *usage.Output, *usage.Total, *usage.CacheRead, *usage.Thought, usage.CacheWrite == nil), "100 20 120 7 3 true")
	})
}

func str(s string) *string { return &s }

func TestChangedFilesAreThoseOfCompletedCalls(t *testing.T) {
	var tr acp.Transcript
	diff := func(path string) *[]acp.ToolContent { return &[]acp.ToolContent{{Type: "diff", Path: path}} }
	tr.Tool(acp.Tool{ID: "1", Content: diff("/w/a"), Status: str("pending")}) // only asked for
	tr.Tool(acp.Tool{ID: "2", Content: diff("/w/b"), Status: str("completed")})
	tr.Tool(acp.Tool{ID: "3", Content: diff("/w/c"), Status: str("failed")})
	tr.Tool(acp.Tool{ID: "4", Kind: str("delete"), Locations: &[]acp.Location{{Path: "/w/d"}}, Status: str("completed")})
	tr.Tool(acp.Tool{ID: "5", Kind: str("read"), Locations: &[]acp.Location{{Path: "/w/e"}}, Status: str("completed")})
	tr.Tool(acp.Tool{ID: "6", Content: diff("/w/b"), Status: str("completed")})
	equalLists(t, "changed", tr.Summary().ChangedFiles, []string{"/w/b", "/w/d"})
}

func chunk(id, text string) *acp.Update {
	return &acp.Update{Kind: acp.AgentMessage, Chunk: &acp.Chunk{MessageID: id, ContentType: "text", Text: text}}
}

func TestTheAnswerIsTheLastMessage(t *testing.T) {
	tool := &acp.Update{Kind: acp.ToolCall, Tool: &acp.Tool{ID: "t"}}
	for name, c := range map[string]struct {
		in   []*acp.Update
		want string
	}{
		"without ids one message":           {[]*acp.Update{chunk("", "a"), chunk("", "b")}, "ab"},
		"without ids a tool call parts":     {[]*acp.Update{chunk("", "looking"), tool, chunk("", "the "), tool, chunk("", "answer")}, "the answer"},
		"a warning is not the answer":       {[]*acp.Update{chunk("", "Warning"), chunk("m", "answer"), chunk("", "Warning")}, "answer"},
		"ids may be mixed":                  {[]*acp.Update{chunk("1", "a"), chunk("2", "x"), chunk("1", "b"), chunk("2", "y")}, "xy"},
		"empty chunks say nothing":          {[]*acp.Update{chunk("1", "a"), chunk("2", "")}, "a"},
		"a blank message is not the answer": {[]*acp.Update{chunk("1", "a"), chunk("2", "\n")}, "a"},
		"nothing":                           {nil, ""},
	} {
		var tr acp.Transcript
		for _, u := range c.in {
			if err := tr.Update(u); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, name, tr.Text(), c.want)
	}
}

func TestAnAnswerIsWholeOrAnError(t *testing.T) {
	var tr acp.Transcript
	piece := strings.Repeat("x", 1<<20)
	for range 64 {
		if err := tr.Update(chunk("m", piece)); err != nil {
			t.Fatal(err)
		}
	}
	err := tr.Update(chunk("m", "y"))
	equal(t, "code", fault.CodeOf(err), acp.OutputLimit)
	equal(t, "kept", len(tr.Text()), 64<<20)
	equal(t, "truncated", tr.Summary().Truncated, true)
}

func TestWhatAToolPrintsIsBounded(t *testing.T) {
	var tr acp.Transcript
	for range 100 {
		tr.Tool(acp.Tool{ID: "1", Output: strings.Repeat("é", 1<<10)})
	}
	tr.Tool(acp.Tool{ID: "1", RawInput: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)})
	s := tr.Summary()
	if n := len(s.Tools[0].Output); n > 64<<10 || n < 63<<10 || strings.Contains(s.Tools[0].Output, "\uFFFD") || !s.Truncated {
		t.Errorf("%d bytes of output", n)
	}
	if n := len(s.Tools[0].RawInput); n > 1<<10 {
		t.Errorf("%d bytes of input", n)
	}
}

// Case 53 at this level.
func TestPagesAreFoundInProse(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[?1049h\x1b[2J\x1b[H\x1b[?1006l\x1b[<u\x1b[?7hhttps://a.test/o?x=1&y=2":                  "https://a.test/o?x=1&y=2",
		"Visit \x1b[36mhttps://a.test/d\x1b[0m.":                                                      "https://a.test/d",
		"\x1b]8;;https://link.test\x1b\\click\x1b]8;;\x1b\\ http://127.0.0.1:80/cb, (https://b.test)": "http://127.0.0.1:80/cb https://b.test",
		"no page: ftp://a.test": "",
	} {
		equal(t, text, strings.Join(acp.Pages(text), " "), want)
	}
}
