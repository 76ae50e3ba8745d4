package sessions

import (
	"strings"

	"github.com/agent-knock-knock/akk/internal/harness"
)

const (
	// shortText is what is shown of a text that has no room, and shortTools how many tool
	// calls: six times as much, the worst that JSON makes of it, is far below any limit.
	shortText  = 1 << 20
	shortTools = 1000
	// maxDelta bounds the words of one event, so that one always has room in a reply.
	maxDelta = 1 << 20
)

// Shorter is the status for a reply that has no room for it. The first step leaves out what
// is there twice, the texts message by message; the second shows the beginning of the text
// and no output of tools. Each says so with truncated; what is stored stays whole, and the
// event log has it in pieces. It reports false when there is nothing to leave out.
func (st MessageStatus) Shorter(step int) (any, bool) {
	if step > 1 || st.Result == nil && st.Partial == nil {
		return nil, false
	}
	st.Result, st.Partial = shorter(st.Result, step), shorter(st.Partial, step)
	return st, true
}

// Bytes is how much room the texts need at least.
func (st MessageStatus) Bytes() (n int) {
	for _, r := range []*harness.Result{st.Result, st.Partial} {
		if r == nil {
			continue
		}
		n += len(r.Text)
		for _, m := range r.Messages {
			n += len(m.Text)
		}
	}
	return n
}

func shorter(whole *harness.Result, step int) *harness.Result {
	if whole == nil {
		return nil
	}
	r := *whole
	r.Messages, r.Truncated, r.TextBytes = nil, true, len(r.Text)
	if step == 0 {
		return &r
	}
	r.Text, _ = cut(r.Text, shortText)
	tools := r.Tools[:min(len(r.Tools), shortTools)]
	r.Tools = make([]harness.Tool, 0, len(tools))
	for _, t := range tools {
		title, _ := cut(t.Title, 1000)
		r.Tools = append(r.Tools, harness.Tool{ID: t.ID, Title: title, Kind: t.Kind, Status: t.Status})
	}
	r.ChangedFiles = r.ChangedFiles[:min(len(r.ChangedFiles), shortTools)]
	return &r
}

// cut parts a text after at most n bytes, never inside a character. A text that is no UTF-8
// is cut anyway.
func cut(text string, n int) (head, tail string) {
	if len(text) <= n {
		return text, ""
	}
	for i := n; i > n-4; i-- {
		if text[i]&0xC0 != 0x80 { // a character begins here
			n = i
			break
		}
	}
	return strings.Clone(text[:n]), text[n:]
}
