package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The table may not promise a test that is not there, nor leave out a case of the stage
// that is built.
const (
	acceptance = "docs/ACCEPTANCE.md"
	lastCase   = 61
)

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	// A row begins with "| 7 …", "| 7, 8 …" or "| 54–57 …"; other tables begin with a letter.
	rowCases = regexp.MustCompile(`^\| ((?:\d+(?:–\d+)?(?:, )?)+)[ ]`)
)

func TestTheAcceptanceTableNamesTestsThatExistAndMissesNoCase(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), acceptance))
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for _, f := range load(t) {
		if !f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				exists[fn.Name.Name] = true
			}
		}
	}
	covered := map[int]bool{}
	for n, line := range strings.Split(string(text), "\n") {
		names := testName.FindAllStringSubmatch(line, -1)
		for _, m := range names {
			if !exists[m[1]] {
				t.Errorf("%s:%d: there is no test %s", acceptance, n+1, m[1])
			}
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Case") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| Situation") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		if len(names) == 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
			t.Errorf("%s:%d: neither a test nor a reason", acceptance, n+1)
		}
		for _, c := range casesOf(t, line) {
			covered[c] = true
		}
	}
	for c := 1; c <= lastCase; c++ {
		if !covered[c] {
			t.Errorf("%s has no row for case %d", acceptance, c)
		}
	}
}

// casesOf reads the case numbers at the beginning of a row.
func casesOf(t *testing.T, line string) (out []int) {
	t.Helper()
	m := rowCases.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(m[1], ", "), ", ") {
		first, last, isRange := strings.Cut(part, "–")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			t.Fatal(err)
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			t.Fatal(err)
		}
		for c := from; c <= to; c++ {
			out = append(out, c)
		}
	}
	return out
}
