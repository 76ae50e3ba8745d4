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

// The tables may not promise a test that is not there, nor leave out a case of what is
// built.
const acceptance = "docs/ACCEPTANCE.md"

// lastCase is the last number of each specification's cases, by the letter before them.
var lastCase = map[string]int{"": 61, "L": 60, "N": 75}

// untested are the cases of headless agents that have no test yet, and why. Their rows say
// it too; a case that gets a test leaves this list.
var untested = map[string]string{
	"N61": "no launch in Docker yet",
	"N62": "no launch over SSH yet",
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	// A row begins with "| 7 …", "| 7, 8 …" or "| 54–57 …", those of the ledger with an L
	// before each number, those of headless agents with an N; other tables begin with other
	// letters.
	rowCases = regexp.MustCompile(`^\| ((?:[LN]?\d+(?:–[LN]?\d+)?(?:, )?)+)[ ]`)
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
	covered := map[string]bool{}
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
			if why, none := untested[c]; strings.HasPrefix(c, "N") && none != (len(names) == 0) {
				t.Errorf("%s:%d: case %s names %d tests, and the reason for none is %q", acceptance, n+1, c, len(names), why)
			}
		}
	}
	for letter, last := range lastCase {
		for n := 1; n <= last; n++ {
			if c := letter + strconv.Itoa(n); !covered[c] {
				t.Errorf("%s has no row for case %s", acceptance, c)
			}
		}
	}
}

// casesOf reads the cases at the beginning of a row, each with its letter.
func casesOf(t *testing.T, line string) (out []string) {
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
		letter := ""
		if first[0] == 'L' || first[0] == 'N' {
			letter = first[:1]
		}
		from, err := strconv.Atoi(strings.TrimPrefix(first, letter))
		if err != nil {
			t.Fatal(err)
		}
		to, err := strconv.Atoi(strings.TrimPrefix(last, letter))
		if err != nil {
			t.Fatal(err)
		}
		for n := from; n <= to; n++ {
			out = append(out, letter+strconv.Itoa(n))
		}
	}
	return out
}
