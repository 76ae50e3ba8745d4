package standin

import (
	"fmt"
	"strings"
)

// piece is a part of a draft: what it is and what the screen shows of it.
type piece struct {
	text  string
	shown string // "" when the text itself is shown
}

// composer is the input line of an agent.
type composer struct {
	pieces []piece
}

func (c *composer) add(text string) {
	if n := len(c.pieces); n > 0 && c.pieces[n-1].shown == "" {
		c.pieces[n-1].text += text
		return
	}
	c.pieces = append(c.pieces, piece{text: text})
}

func (c *composer) addFolded(text, shown string) {
	c.pieces = append(c.pieces, piece{text: text, shown: shown})
}

func (c *composer) text() string {
	var b strings.Builder
	for _, p := range c.pieces {
		b.WriteString(p.text)
	}
	return b.String()
}

func (c *composer) shown() string {
	var b strings.Builder
	for _, p := range c.pieces {
		if p.shown != "" {
			b.WriteString(p.shown)
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

func (c *composer) folded() bool {
	for _, p := range c.pieces {
		if p.shown != "" {
			return true
		}
	}
	return false
}

func (c *composer) empty() bool { return c.text() == "" }
func (c *composer) clear()      { c.pieces = nil }

func (c *composer) set(text string) {
	c.clear()
	if text != "" {
		c.add(text)
	}
}

func (c *composer) backspace() {
	n := len(c.pieces)
	if n == 0 {
		return
	}
	p := &c.pieces[n-1]
	if r := []rune(p.text); p.shown == "" && len(r) > 1 {
		p.text = string(r[:len(r)-1])
		return
	}
	c.pieces = c.pieces[:n-1]
}

// killLine clears the last line only, as C-u does.
func (c *composer) killLine() {
	text := c.text()
	i := strings.LastIndexByte(text, '\n')
	if i >= 0 && i == len(text)-1 {
		c.set(text[:i])
		return
	}
	c.set(text[:i+1])
}

func pastedContent(n int) string { return fmt.Sprintf("[Pasted Content %d chars]", n) }

func pastedText(nth, newlines int) string {
	if newlines == 0 {
		return fmt.Sprintf("[Pasted text #%d]", nth)
	}
	return fmt.Sprintf("[Pasted text #%d +%d lines]", nth, newlines)
}
