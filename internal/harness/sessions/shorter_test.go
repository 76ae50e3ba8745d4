package sessions_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/harness"
	"github.com/agent-knock-knock/akk/internal/harness/sessions"
)

// What a reply has no room for is left out in steps, each says so, and the stored result is
// not touched.
func TestAStatusGetsShorterInStepsAndSaysSo(t *testing.T) {
	whole := strings.Repeat("ab€", 1<<20)
	st := sessions.MessageStatus{State: harness.MessageCompleted, Result: &harness.Result{Text: whole,
		Messages: []harness.Text{{Text: "before"}, {Text: whole}}, Tools: []harness.Tool{{ID: "1", Title: "ls", Output: "x", RawInput: []byte("{}")}}}}
	if n := st.Bytes(); n != 2*len(whole)+6 {
		t.Errorf("%d bytes", n)
	}
	for step, size := range []int{len(whole), 1 << 20} {
		out, ok := st.Shorter(step)
		if !ok {
			t.Fatal("no step", step)
		}
		r := out.(sessions.MessageStatus).Result
		if !r.Truncated || r.TextBytes != len(whole) || len(r.Messages) != 0 || len(r.Text) > size || len(r.Text) < size-3 || !utf8.ValidString(r.Text) || !strings.HasPrefix(whole, r.Text) {
			t.Errorf("step %d: %v, %d bytes of %d, %d messages", step, r.Truncated, len(r.Text), r.TextBytes, len(r.Messages))
		}
		if tool := r.Tools[0]; tool.Title != "ls" || (tool.Output == "") != (step == 1) {
			t.Errorf("step %d: %+v", step, tool)
		}
	}
	if _, ok := st.Shorter(2); ok {
		t.Error("there is nothing left to leave out")
	}
	if r := st.Result; r.Truncated || r.Text != whole || len(r.Messages) != 2 || r.Tools[0].Output != "x" {
		t.Error("the stored result was changed")
	}
}
