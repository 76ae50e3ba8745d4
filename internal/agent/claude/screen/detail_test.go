package screen

import (
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/agent/claude/known"
)

func TestADetailSaysWhetherItIsWhole(t *testing.T) {
	if text, all := detail([]string{"────", "  rm -rf x  ", ""}); text != "rm -rf x" || !all {
		t.Errorf("%q %v", text, all)
	}
	if text, all := detail([]string{strings.Repeat("x", known.ExcerptMax+1)}); len(text) > known.ExcerptMax || all {
		t.Errorf("%d bytes, %v", len(text), all)
	}
}
