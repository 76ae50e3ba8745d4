package tmux

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// vis is what versions 3.4 and 3.5 do to a printed value.
func vis(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\b':
			b.WriteString(`\b`)
		case c < 0x20 && c != '\t' && c != '\n' || c == 0x7f:
			b.WriteString(`\` + string('0'+c>>6) + string('0'+c>>3&7) + string('0'+c&7))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// row is what tmux prints for a pane; show rewrites the texts as a version does.
func row(m marks, id string, values []string, show func(string) string) string {
	f := []string{id, "12", "0", "1", "0", "", "3", "4", "80", "24", "5", "6", "1", "0", "", "99", "3.5a"}
	for _, v := range values {
		f = append(f, strconv.Itoa(len(v)), show(v))
	}
	return m.start + strings.Join(f, m.sep) + m.end + "\n"
}

func TestRowsAreReadExactlyOrTheirTextIsUnknown(t *testing.T) {
	plain := func(s string) string { return s }
	for _, show := range []func(string) string{plain, vis} {
		rapid.Check(t, func(t *rapid.T) {
			m := newMarks()
			text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\n\t\x1b\r\\07=<>% "))))
			values := []string{text.Draw(t, "session"), text.Draw(t, "command"), text.Draw(t, "path"), text.Draw(t, "title")}
			for i, v := range values {
				values[i] = strings.ReplaceAll(v, "\x00", "") // no C string holds it
			}
			panes, rejected := m.parse([]byte(row(m, "%7", values, show)+row(m, "%8", values, show)), "/s")
			if rejected != 0 || len(panes) != 2 || panes[0].ID != "%7" || panes[1].ID != "%8" {
				t.Fatalf("%d rejected, panes %+v", rejected, panes)
			}
			got := []string{panes[0].Session, panes[0].Command, panes[0].Path, panes[0].Title}
			for i := range values {
				if got[i] != values[i] && got[i] != "" {
					t.Errorf("%q was read as %q", values[i], got[i])
				}
				if got[i] == "" && !strings.Contains(values[i], `\`) && values[i] != "" {
					t.Errorf("%q was lost without an ambiguity", values[i])
				}
			}
			p := panes[0]
			if p.PID != 12 || !p.InMode || p.Dead || p.Window != 3 || p.Index != 4 || p.Width != 80 || p.Height != 24 || p.CursorX != 5 ||
				p.CursorY != 6 || !p.CursorFlag || p.BracketedPaste != FlagUnknown || p.ServerPID != 99 || p.Version != "3.5a" || p.Socket != "/s" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestMalformedRowsAreRejectedAndOthersKept(t *testing.T) {
	m := newMarks()
	good := row(m, "%1", []string{"s", "c", "/p", "t"}, vis)
	for _, bad := range []string{
		m.start + m.end,
		m.start + "%2" + m.sep + "1" + m.end,
		strings.Replace(good, "%1", "%x", 1),
		strings.Replace(good, m.sep+"24"+m.sep, m.sep+"high"+m.sep, 1),
		strings.Replace(good, m.sep+"24"+m.sep, m.sep+"-24"+m.sep, 1),
		strings.TrimSuffix(good, m.end+"\n"),
		strings.Replace(good, m.end, m.sep+"more"+m.end, 1),
	} {
		panes, rejected := m.parse([]byte(good+bad+good), "/s")
		if rejected != 1 || len(panes) != 2 {
			t.Errorf("%q: %d rejected, %d panes", bad, rejected, len(panes))
		}
	}
	for flag, want := range map[string]Flag{"": FlagUnknown, "0": FlagOff, "1": FlagOn} {
		s := strings.Replace(good, m.sep+m.sep+"99", m.sep+flag+m.sep+"99", 1)
		if panes, _ := m.parse([]byte(s), "/s"); len(panes) != 1 || panes[0].BracketedPaste != want {
			t.Errorf("flag %q: %+v", flag, panes)
		}
	}
}

// tmux 3.7 tells whether the program frames pastes.
func TestSeveralLinesAreNotForAProgramKnownNotToFramePastes(t *testing.T) {
	to := Target{Socket: "/s", PaneID: "%1", PanePID: 12}
	one, many := guard{target: to}, guard{target: to, needsFrame: true}
	if strings.Contains(one.condition(), "bracket_paste_flag") || !strings.Contains(many.condition(), "#{!=:#{bracket_paste_flag},0}") {
		t.Errorf("conditions %q and %q", one.condition(), many.condition())
	}
	p := Pane{ID: "%1", PID: 12, BracketedPaste: FlagOff}
	if r := many.reason(p); !strings.Contains(r, "does not frame pastes") {
		t.Error(r)
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	m := marks{start: "<<n<", sep: "=n=", end: ">n>>"}
	f.Add([]byte(row(m, "%1", []string{"s", "c", "/p", "t"}, vis)))
	f.Fuzz(func(t *testing.T, b []byte) {
		panes, _ := m.parse(b, "/s")
		for _, p := range panes {
			if !validPaneID(p.ID) || p.PID < 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}

func TestSocketOfACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"tmux -S /a/b new":                "/a/b",
		"tmux -S/a/b new":                 "/a/b",
		"tmux -u -f /dev/null -S /a new":  "/a",
		"tmux -uS /a new":                 "/a",
		"tmux -L name new":                "",
		"tmux new-session -S /a":          "",
		"tmux -- -S /a":                   "",
		"tmux -S":                         "",
		"tmux":                            "",
		"tmux -2 -T features -f -S -S /x": "/x",
	} {
		if got, _ := socketArg(strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for v, want := range map[string]string{"/tmp/s,12,0": "/tmp/s", "/tmp/a,b,12,0": "/tmp/a,b", "": "", "/tmp/s": "", ",,": ""} {
		if got := socketOf(v); got != want {
			t.Errorf("TMUX=%s: %q, want %q", v, got, want)
		}
	}
	if !slices.Equal(At("/s").candidates(), binaries) {
		t.Error("a server does not use the usual programs")
	}
}
