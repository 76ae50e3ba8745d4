package tmux

import (
	"strconv"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// MaxText is the most that [Server.Paste] takes, in bytes.
const MaxText = 1 << 20

// ValidateText reports whether text may be pasted: not empty, at most max bytes, valid
// UTF-8, and no control character (C0, DEL or C1) but LF and TAB. An ESC could end the
// frame of the paste, so that the rest of the text would act as keys; the other controls
// are keys. The error is [fault.Invalid] and names the first offence's byte offset.
//
// Line ends are LF. Callers turn CRLF and CR into LF before, so that what they hash,
// compare and paste is the same text.
func ValidateText(text []byte, max int) error {
	const op = "tmux.text"
	if len(text) == 0 {
		return fault.New(fault.Invalid, op, "the text is empty")
	}
	if len(text) > max {
		return fault.New(fault.Invalid, op, "the text has %d bytes, the limit is %d", len(text), max).
			WithHint("put the long part in a file and name the file")
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			return fault.New(fault.Invalid, op, "the text is not UTF-8 at byte %d", i)
		case r == '\n' || r == '\t':
		case r == '\r':
			return fault.New(fault.Invalid, op, "the text has a carriage return at byte %d", i).
				WithHint("end lines with LF only")
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return fault.New(fault.Invalid, op, "the text has the control character U+%04X at byte %d", r, i).
				WithHint("remove it: a terminal would act on it")
		}
		i += n
	}
	return nil
}

// Key is one key press out of the closed set that this package sends.
type Key struct {
	name string // a tmux key name
	char rune   // or one printable character
}

// The named keys.
var (
	Enter  = Key{name: "Enter"}
	Escape = Key{name: "Escape"}
	CtrlC  = Key{name: "C-c"}
	CtrlU  = Key{name: "C-u"}

	// Within a dialog; BackTab is Shift+Tab.
	Up      = Key{name: "Up"}
	Down    = Key{name: "Down"}
	Left    = Key{name: "Left"}
	Right   = Key{name: "Right"}
	BackTab = Key{name: "BTab"}
	Tab     = Key{name: "Tab"}
)

// Char is the key that types one printable character. Any other rune gives a Key that
// [Server.Key] refuses.
func Char(r rune) Key { return Key{char: r} }

// String names the key for people.
func (k Key) String() string {
	if k.name != "" {
		return k.name
	}
	return strconv.QuoteRune(k.char)
}

func (k Key) valid() bool {
	return k.name != "" || k.char == ' ' || k.char != utf8.RuneError && strconv.IsPrint(k.char)
}

// command is the send-keys command for a pane, in tmux's command language.
func (k Key) command(paneID string) string {
	if k.name != "" {
		return "send-keys -t " + paneID + " " + k.name
	}
	quoted := "'" + string(k.char) + "'"
	if k.char == '\'' {
		quoted = `"'"`
	}
	return "send-keys -l -t " + paneID + " -- " + quoted
}
