package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-knock-knock/akk/internal/fault"
	"github.com/agent-knock-knock/akk/internal/turn"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func collect(t testing.TB, tl *Tail) (got []string, err error) {
	t.Helper()
	_, err = tl.Read(func(line []byte, at turn.LogMark) bool {
		got = append(got, string(line))
		return true
	})
	return got, err
}

func TestTailGivesEveryLineOnceHoweverTheWriterCutsThem(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, "f"+strings.Repeat("x", n%7)+".jsonl")
		os.Remove(path)
		want := rapid.SliceOf(rapid.StringMatching(`[a-c日]{1,9}`)).Draw(rt, "lines")
		text := strings.Join(append(want, ""), "\n")
		tl := &Tail{Mark: turn.LogMark{Path: path}}
		var got []string
		for len(text) > 0 {
			k := rapid.IntRange(1, len(text)).Draw(rt, "cut")
			write(t, path, text[:k])
			text = text[k:]
			lines, err := collect(t, tl)
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, lines...)
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			rt.Fatalf("got %q want %q", got, want)
		}
		fi, err := os.Stat(path)
		if err == nil && tl.Mark.Offset != fi.Size() {
			rt.Fatalf("offset %d of %d", tl.Mark.Offset, fi.Size())
		}
	})
}

func TestTailReadsOnlyFromTheAnchor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	write(t, path, "old one\nold two\nbegun")
	m, err := Mark(path)
	if err != nil || m.Offset != int64(len("old one\nold two\n")) || m.Inode == 0 {
		t.Fatalf("mark %+v, %v", m, err)
	}
	tl := &Tail{Mark: m, Known: true}
	if got, err := collect(t, tl); err != nil || len(got) != 0 {
		t.Fatalf("a record that is not whole yet: %q, %v", got, err)
	}
	write(t, path, " and ended\nnew\n")
	if got, err := collect(t, tl); err != nil || strings.Join(got, "|") != "begun and ended|new" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTailRefusesAReplacedAShorterAndAWritableFile(t *testing.T) {
	for code, change := range map[fault.Code]func(path string) error{
		CodeReplaced: func(p string) error {
			if err := os.WriteFile(p+".new", []byte("a\nb\nc\n"), 0o600); err != nil {
				return err
			}
			return os.Rename(p+".new", p)
		},
		CodeTruncated: func(p string) error { return os.Truncate(p, 1) },
		CodeUntrusted: func(p string) error { return os.Chmod(p, 0o666) },
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		write(t, path, "a\nb\n")
		m, err := Mark(path)
		if err != nil {
			t.Fatal(err)
		}
		tl := &Tail{Mark: m, Known: true}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if got, err := collect(t, tl); fault.CodeOf(err) != code || len(got) != 0 {
			t.Errorf("%s: %q, %v", code, got, err)
		}
		if got, err := collect(t, tl); err != nil || got != nil {
			t.Errorf("%s: read again after the refusal: %q, %v", code, got, err)
		}
	}
	path := filepath.Join(t.TempDir(), "t.jsonl")
	write(t, path, "a\n")
	m, _ := Mark(path)
	os.Remove(path)
	if _, err := collect(t, &Tail{Mark: m, Known: true}); fault.CodeOf(err) != CodeReplaced {
		t.Errorf("a removed file: %v", err)
	}
}

func TestTailOfAFileThatDoesNotExistYetIsSilent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "t.jsonl")
	tl := &Tail{Mark: turn.LogMark{Path: path}}
	if got, err := collect(t, tl); err != nil || got != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, "a\n")
	if got, err := collect(t, tl); err != nil || len(got) != 1 || !tl.Known {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRecordOfMegabytesIsReadAndAnEndlessOneRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	big := strings.Repeat("x", 3<<20)
	write(t, path, big+"\nsmall\n")
	got, err := collect(t, &Tail{Mark: turn.LogMark{Path: path}})
	if err != nil || len(got) != 2 || got[0] != big {
		t.Fatalf("%d lines, %v", len(got), err)
	}
	tl := &Tail{Mark: turn.LogMark{Path: path, Offset: 0}}
	tl.partial = make([]byte, 64<<20)
	if _, err := tl.take([]byte("x"), nil); fault.CodeOf(err) != CodeLongLine {
		t.Errorf("got %v", err)
	}
}

func TestMarkOfAFileWithoutALineIsItsBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if _, err := Mark(path); !fault.Is(err, fault.NotFound) {
		t.Errorf("absent: %v", err)
	}
	write(t, path, strings.Repeat("y", 600<<10))
	if m, err := Mark(path); err != nil || m.Offset != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}
