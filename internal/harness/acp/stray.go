package acp

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Most processes never see a login: the expressions are compiled at their first use.
var (
	// escapes are the sequences that steer a terminal: CSI, OSC, and short ones.
	escapes = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_=>78]`)
	})
	pages = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`https?://[^\s\x00-\x1f\x7f"'<>` + "`" + `\\^{|}]+`)
	})
)

// Pages finds the addresses of web pages in prose, such as what an agent prints while
// somebody logs in. Terminal sequences are removed; punctuation after an address is not
// part of it. At most eight are returned, each once.
func Pages(text string) []string {
	var found []string
	for _, page := range pages().FindAllString(escapes().ReplaceAllString(text, ""), 8) {
		page = strings.TrimRight(page, ".,;:!?)]")
		if !slices.Contains(found, page) {
			found = append(found, page)
		}
	}
	return found
}
