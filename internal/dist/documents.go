package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/agent-knock-knock/akk/internal/cli"
)

//go:embed INSTALL.md
var install []byte

// documents are the files that every platform gets: what to read, completions, man pages.
func documents(version string, at time.Time) ([]entry, error) {
	out := []entry{{name: "INSTALL.md", body: install}}
	for _, name := range []string{"README.md", "LICENSE", "CHANGELOG.md"} {
		body, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: name, body: body})
	}
	root := cli.New(everything())
	for shell, write := range map[string]func(*bytes.Buffer) error{
		"completions/agent-knock-knock.bash": func(b *bytes.Buffer) error { return root.GenBashCompletionV2(b, true) },
		"completions/_agent-knock-knock":     func(b *bytes.Buffer) error { return root.GenZshCompletion(b) },
		"completions/agent-knock-knock.fish": func(b *bytes.Buffer) error { return root.GenFishCompletion(b, true) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", shell, err)
		}
		out = append(out, entry{name: shell, body: b.Bytes()})
	}
	pages, err := manPages(root, version, at)
	return append(out, pages...), err
}

// manPages is one page for each command that people see.
func manPages(cmd *cobra.Command, version string, at time.Time) ([]entry, error) {
	var out []entry
	if cmd.Hidden || cmd.Name() == "help" {
		return nil, nil
	}
	var b bytes.Buffer
	header := &doc.GenManHeader{Title: strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-")), Section: "1", Date: &at,
		Source: "Agent Knock Knock " + version, Manual: "Agent Knock Knock"}
	if err := doc.GenMan(cmd, header, &b); err != nil {
		return nil, fmt.Errorf("the man page of %s: %w", cmd.CommandPath(), err)
	}
	out = append(out, entry{name: "man/man1/" + strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1", body: b.Bytes()})
	for _, sub := range cmd.Commands() {
		pages, err := manPages(sub, version, at)
		if err != nil {
			return nil, err
		}
		out = append(out, pages...)
	}
	return out, nil
}

// everything is the dependencies of the whole command tree: functions that are there and
// are never called.
func everything() cli.Deps {
	var d cli.Deps
	fill(reflect.ValueOf(&d).Elem())
	d.LookupEnv, d.IsTerminal = nil, nil // the tree has its own
	return d
}

func fill(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { panic("a document is made, nothing runs") }))
		case reflect.Struct:
			fill(f)
		}
	}
}
