package policy

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// programName is what the first word of a command may be: no path and no NAME=value.
var programName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._+-]+$`) })

// ParseCommand splits a command line into its words, if it is one plain command: no other
// command, redirection, expansion, pattern or comment can hide in it. Everything that a
// shell would read in more than one way is refused, never guessed.
func ParseCommand(line string) ([]string, error) {
	words, err := split(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("the command is empty")
	}
	if !programName().MatchString(words[0]) {
		return nil, fmt.Errorf("the program is not a plain name")
	}
	return words, nil
}

// split is the shell's word splitting of the plain part of its language.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false // a word of no characters, such as '', is a word too
	end := func() {
		if begun {
			words = append(words, word.String())
			word.Reset()
			begun = false
		}
	}
	in := []rune(line)
	for i := 0; i < len(in); i++ {
		c := in[i]
		switch {
		case c == '\r' || c == '\n':
			return nil, fmt.Errorf("it has more than one line")
		case c < ' ' && c != '\t' || c == 0x7f || c == '\uFFFD' || c > 0x7e && !plainLetter(c):
			return nil, fmt.Errorf("it holds a character that is not shown as it is")
		case c == ' ' || c == '\t':
			end()
		case c == '\'':
			n := closing(in, i+1)
			if n < 0 {
				return nil, fmt.Errorf("a quote is not closed")
			}
			part := string(in[i+1 : n])
			if strings.ContainsAny(part, "\r\n") {
				return nil, fmt.Errorf("it has more than one line")
			}
			word.WriteString(part)
			begun, i = true, n
		case c == '"':
			n, err := quoted(in, i+1, &word)
			if err != nil {
				return nil, err
			}
			begun, i = true, n
		case c == '\\':
			if i+1 == len(in) {
				return nil, fmt.Errorf("it ends with a backslash")
			}
			if i++; in[i] == '\r' || in[i] == '\n' {
				return nil, fmt.Errorf("it has more than one line")
			}
			word.WriteRune(in[i])
			begun = true
		case strings.ContainsRune("|&;<>(){}!`$#*?[]", c):
			return nil, fmt.Errorf("it holds %q, which a shell reads as more than text", c)
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	end()
	return words, nil
}

// plainLetter reports whether a character beyond ASCII is a visible letter or digit.
// Others may be blank, change the direction of what is shown, or look like a blank.
func plainLetter(c rune) bool { return letters(c) }

// closing finds the next single quote.
func closing(in []rune, from int) int {
	for i := from; i < len(in); i++ {
		if in[i] == '\'' {
			return i
		}
	}
	return -1
}

// quoted reads a double-quoted part and returns the place of its end.
func quoted(in []rune, from int, word *strings.Builder) (int, error) {
	for i := from; i < len(in); i++ {
		switch c := in[i]; c {
		case '"':
			return i, nil
		case '$', '`', '!':
			return 0, fmt.Errorf("it holds %q, which a shell reads as more than text", c)
		case '\r', '\n':
			return 0, fmt.Errorf("it has more than one line")
		case '\\':
			if i+1 == len(in) {
				return 0, fmt.Errorf("a quote is not closed")
			}
			switch next := in[i+1]; next {
			case '"', '\\', '$', '`':
				word.WriteRune(next)
				i++
			case '\r', '\n':
				return 0, fmt.Errorf("it has more than one line")
			default:
				word.WriteRune(c) // a shell keeps it
			}
		default:
			if c < ' ' && c != '\t' || c == 0x7f || c > 0x7e && !plainLetter(c) {
				return 0, fmt.Errorf("it holds a character that is not shown as it is")
			}
			word.WriteRune(c)
		}
	}
	return 0, fmt.Errorf("a quote is not closed")
}

// ShellWords returns the words of a command line that a program gave to a shell, such as
// /bin/bash -lc 'npm test', to see what it runs. It proves nothing about the command.
func ShellWords(line string) ([]string, error) { return split(line) }
