package fakeacp

import (
	"flag"
	"io"
	"time"
)

// Flags are the behaviours of the whole process.
type Flags struct {
	Name     string
	Protocol int
	// Logging in. LoginState is a file that exists when somebody is logged in; without it
	// the process remembers. ReadyFile completes a login by page when it appears.
	AuthRequired, AuthHang, AuthNoop, AuthURLStdout, AuthURLNotify, AuthToken, AuthTerminal bool
	LoginState, ReadyFile                                                                   string
	Login                                                                                   bool
	LoginStyle                                                                              string
	// What it can do.
	NoLoad, NoResume, NoOptional, Legacy, NoOptions, KeepOptions bool
	Replay                                                       int
	// How it starts and ends.
	SlowInit, SlowNew    time.Duration
	HangInit, HangNew    bool
	Prose                bool
	IgnoreTERM, StayOpen bool
	Stderr               string
	// Files that it writes: a journal of every line it got, its environment, and the
	// sessions that session/load finds again.
	Journal, EnvDump, State string

	args []string
	env  []string
}

// ParseFlags reads the command line. Words that are no flags are kept for ARGS.
func ParseFlags(args, env []string, stderr io.Writer) (Flags, error) {
	f := Flags{args: args, env: env}
	s := flag.NewFlagSet("fakeacp", flag.ContinueOnError)
	s.SetOutput(stderr)
	s.StringVar(&f.Name, "name", "fake-acp", "name of the agent")
	s.IntVar(&f.Protocol, "protocol", 1, "protocol version that it answers")
	s.BoolVar(&f.AuthRequired, "auth-required", false, "session/new fails until authenticate")
	s.BoolVar(&f.AuthHang, "auth-hang", false, "authenticate is never answered")
	s.BoolVar(&f.AuthNoop, "auth-noop", false, "authenticate succeeds and changes nothing")
	s.BoolVar(&f.AuthURLStdout, "auth-url-stdout", false, "authenticate prints a page's address as prose and waits for --ready-file")
	s.BoolVar(&f.AuthURLNotify, "auth-url-notify", false, "authenticate sends a page's address as a notification and waits for --ready-file")
	s.BoolVar(&f.AuthToken, "auth-token", false, "authenticate needs a key in _meta")
	s.BoolVar(&f.AuthTerminal, "auth-terminal", false, "offer a login in a terminal")
	s.StringVar(&f.LoginState, "login-state", "", "file that exists when somebody is logged in")
	s.StringVar(&f.ReadyFile, "ready-file", "", "file that completes a login by page")
	s.BoolVar(&f.Login, "login", false, "be the login program: read a code, write --login-state")
	s.StringVar(&f.LoginStyle, "login-style", "", "of the login program: menu, echo, hang or flood")
	s.BoolVar(&f.NoLoad, "no-load", false, "no session/load")
	s.BoolVar(&f.NoResume, "no-resume", false, "no session/resume")
	s.BoolVar(&f.NoOptional, "no-optional", false, "no optional method at all")
	s.BoolVar(&f.Legacy, "legacy", false, "modes and models instead of configOptions")
	s.BoolVar(&f.NoOptions, "no-options", false, "neither modes, models nor configOptions")
	s.BoolVar(&f.KeepOptions, "keep-options", false, "accept a change of options and keep the old value")
	s.IntVar(&f.Replay, "replay", 0, "chunks that session/load replays")
	s.DurationVar(&f.SlowInit, "slow-init", 0, "time before initialize is answered")
	s.DurationVar(&f.SlowNew, "slow-new", 0, "time before session/new is answered")
	s.BoolVar(&f.HangInit, "hang-init", false, "initialize is never answered")
	s.BoolVar(&f.HangNew, "hang-new", false, "session/new is never answered")
	s.BoolVar(&f.Prose, "prose", false, "print prose before the first answer and between frames")
	s.BoolVar(&f.IgnoreTERM, "ignore-term", false, "ignore SIGTERM")
	s.BoolVar(&f.StayOpen, "stay-open", false, "do not end at the end of stdin")
	s.StringVar(&f.Stderr, "stderr", "", "line for stderr at the start")
	s.StringVar(&f.Journal, "journal", "", "file that gets every line received")
	s.StringVar(&f.EnvDump, "env-dump", "", "file that gets the environment")
	s.StringVar(&f.State, "state", "", "folder of the sessions that can be loaded again")
	return f, s.Parse(args)
}
