package fakeacp

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// login plays the program of a login in a terminal. Its styles, all but the first only with a
// controlling terminal:
//
//	""     asks for a code
//	menu   first shows a menu, painted, that takes the key down and Enter
//	echo   repeats the code and prints a key
//	hang   starts a child that ignores everything, and waits for ever
//	flood  writes without end
func login(f Flags, stdin io.Reader, stdout io.Writer) int {
	in := bufio.NewReader(stdin)
	if f.LoginStyle != "" {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			fmt.Fprintln(stdout, "no terminal:", err)
			return 3
		}
		defer tty.Close()
	}
	switch f.LoginStyle {
	case "menu":
		fmt.Fprint(stdout, "\x1b[2J\x1b[Hloading 1%\rloading 99%\rHow?\r\n\x1b[36m> subscription\x1b[0m\r\n  console\r\n")
		if line, err := in.ReadString('\n'); err != nil || line != "\x1b[B\n" {
			fmt.Fprintf(stdout, "no choice: %q\n", line)
			return 1
		}
		fmt.Fprintln(stdout, "console it is")
	case "hang":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		cmd := exec.Command("/bin/sh", "-c", `trap '' TERM HUP INT; echo up; while :; do sleep 1; done`)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return 1
		}
		_, _ = out.Read(make([]byte, 3)) // now it ignores
		fmt.Fprintf(stdout, "waiting [self:%d] [spawned:%d]\n", os.Getpid(), cmd.Process.Pid)
		forever := make(chan os.Signal, 1)
		signal.Notify(forever, syscall.SIGUSR1)
		<-forever
	case "flood":
		for {
			if _, err := fmt.Fprintln(stdout, strings.Repeat("words ", 100)); err != nil {
				return 1
			}
		}
	}
	fmt.Fprint(stdout, "Open https://login.example.test/device and paste the code: ")
	code, err := in.ReadString('\n')
	code = strings.TrimSpace(code)
	if err != nil || code == "" {
		fmt.Fprintln(stdout, "no code")
		return 1
	}
	if f.LoginStyle == "echo" {
		fmt.Fprintf(stdout, "you entered %s\nAPI_KEY=sk-abc123456789abcdef\nEnter it again: ", code)
		if again, err := in.ReadString('\n'); err != nil || strings.TrimSpace(again) != code {
			return 1
		}
	}
	if err := os.MkdirAll(filepath.Dir(f.LoginState), 0o700); err != nil {
		return 1
	}
	if err := os.WriteFile(f.LoginState, []byte("logged in\n"), 0o600); err != nil {
		return 1
	}
	fmt.Fprintln(stdout, "Logged in.")
	return 0
}
