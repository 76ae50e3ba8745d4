package ledger

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agent-knock-knock/akk/internal/fault"
)

// The limits of what a record may hold.
const (
	MaxID    = 256     // bytes of a chosen id or a reference
	MaxShort = 1 << 18 // bytes of a name, a title or a label
	MaxBody  = 2 << 20 // bytes of a text
	MaxItems = 1000    // entries of a list
)

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "ledger", format, args...)
}

func conflict(format string, args ...any) *fault.Error {
	return fault.New(fault.Conflict, "ledger", format, args...)
}

// Missing is the refusal of a reference to a record that is not there.
func Missing(kind, id string) error {
	return fault.New(fault.NotFound, "ledger", "%s %q does not exist here", kind, Clip(id))
}

// Exists is the refusal of an id that is taken.
func Exists(kind, id string) error {
	return fault.New(fault.AlreadyExists, "ledger", "%s %q exists already", kind, Clip(id)).WithHint("choose another id or update that record")
}

// Clip bounds what a message repeats of a value.
func Clip(s string) string { return clipAt(s, 80) }

func clipAt(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for cut := most; cut > 0; cut-- {
		if utf8.RuneStart(s[cut]) {
			return s[:cut] + "…"
		}
	}
	return ""
}

// Trim is what every string of a caller goes through; blank means missing.
func Trim(s string) string { return strings.TrimSpace(s) }

// List trims the entries, drops blank and repeated ones and keeps the order.
func List(in []string) []string {
	var out []string
	seen := make(map[string]bool, len(in))
	for _, s := range in {
		if s = Trim(s); s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// Required refuses a blank value.
func Required(name, value string) error {
	if Trim(value) == "" {
		return invalid("%s is required", name)
	}
	return nil
}

// field is one text with its bound, for check.
type field struct {
	name, value string
	most        int
}

func short(name, value string) field { return field{name, value, MaxShort} }
func body(name, value string) field  { return field{name, value, MaxBody} }
func ref(name, value string) field   { return field{name, value, MaxID} }

// CheckNewID refuses an id that a caller chooses and that could not stand in one line of a list.
// Records that have such an id already stay as they are.
func CheckNewID(what, id string) error {
	if strings.ContainsFunc(id, unicode.IsControl) {
		return invalid("the id of a %s holds control characters", what)
	}
	return check(ref("the id of a "+what, id))
}

// check refuses text that is too long or no text.
func check(fields ...field) error {
	for _, f := range fields {
		switch {
		case len(f.value) > f.most:
			return invalid("%s is longer than %d bytes", f.name, f.most)
		case !utf8.ValidString(f.value):
			return invalid("%s is not Unicode text", f.name)
		}
	}
	return nil
}

func checkList(name string, list []string) error {
	if len(list) > MaxItems {
		return invalid("%s has more than %d entries", name, MaxItems)
	}
	for _, s := range list {
		if err := check(short(name, s)); err != nil {
			return err
		}
	}
	return nil
}

func oneOf(name, value string, allowed []string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return invalid("%s must be one of %s", name, strings.Join(allowed, ", "))
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// Next is the revision after prev: now, or a nanosecond later than prev when the clock
// stands still or goes back. Revisions of a record strictly increase.
func Next(prev, now time.Time) time.Time {
	now = now.UTC()
	if !now.After(prev) {
		return prev.Add(1)
	}
	return now
}

// ParseRevision reads a revision that a caller repeats.
func ParseRevision(name, s string) (time.Time, error) {
	s = Trim(s)
	if s == "" {
		return time.Time{}, invalid("%s is required: repeat the updated_at that was read", name)
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, invalid("%s must be an RFC 3339 time, the updated_at that was read", name)
	}
	return t.UTC(), nil
}

// CheckRevision refuses a stale edit. The comparison is by instant.
func CheckRevision(kind string, have, expected time.Time) error {
	if !have.Equal(expected) {
		return conflict("the %s was changed at %s, this edit is of %s", kind, stamp(have), stamp(expected)).
			WithHint("read it again and repeat the edit with its updated_at")
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func publicOf(err error) (fault.Code, string, string) { return fault.Public(err) }

func faultOf(code fault.Code, format string, args ...any) *fault.Error {
	return fault.New(code, "ledger", format, args...)
}
