package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/agent-knock-knock/akk/internal/testkit/fakehost"
)

// strange is a listener that is no server of ours.
type strange struct {
	net.Listener
	open sync.WaitGroup
}

func listenStrangely(t *testing.T, addr string, serve func(net.Conn)) *strange {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &strange{Listener: l}
	s.open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.open.Go(func() {
				defer c.Close()
				serve(c)
				// A connection that is closed with unread words is reset, which is another case.
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	return s
}

// Cases 6, 7: whoever has the port is left alone, whatever it does with a connection, and
// nothing is started beside it. A session of an earlier server is there again when it is gone.
func TestBadInputAForeignListenerIsLeftAloneWhateverItSpeaks(t *testing.T) {
	h := newHeadless(t)
	first := h.start("", nil)
	session := first.create()
	message := first.must("send_message", obj{"session_id": session, "text": "hello"})["message_id"]
	if err := syscall.Kill(h.registry()[h.url].SupervisorPID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "the server is gone", func() bool { return len(h.servers(t)) == 0 })
	first.Kill()
	addr := h.url[len("http://"):]
	h.env = []string{"HARNESS_ACP_BRIDGE_TIMEOUT_MS=3000"}
	for _, c := range []struct {
		name  string
		serve func(net.Conn)
	}{
		{"it hangs up", func(net.Conn) {}},
		{"it resets", reset},
		{"it is another kind", func(c net.Conn) { _, _ = io.WriteString(c, "220 mail.example.test ESMTP\r\n") }},
		{"it never answers", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }},
		{"it sends no end", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"ok\":true,\"data\":{")
			_, _ = io.Copy(io.Discard, c)
		}},
		{"it floods", func(c net.Conn) {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			for junk := make([]byte, 1<<16); err == nil; {
				_, err = c.Write(junk)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listenStrangely(t, addr, c.serve)
			defer l.open.Wait()
			defer l.Close()
			p := h.in(t).start("", nil)
			code := "incompatible_server"
			if c.name == "it resets" {
				code = "server_unreachable" // as a server of ours that ends may do: asked again, it may be there
			}
			p.refused("ping", obj{}, code)
			p.refused("message_status", obj{"session_id": session, "message_id": message}, code)
			if found := h.servers(t); len(found) > 0 {
				t.Errorf("a server was started: %v", found)
			}
			p.Kill()
		})
	}
	h.env = nil
	p := h.start("", nil)
	if st := p.must("wait", obj{"session_id": session, "message_id": message}); text(st) != "echo:hello" {
		t.Errorf("%v", st)
	}
}

// reset breaks a connection off when it has the request.
func reset(c net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// Case 10: two clients at one moment, when the port is taken by somebody between their look
// and their start: no server is left behind, and both say why.
func TestBadInputTwoClientsAtOnceOnAPortThatIsTaken(t *testing.T) {
	h := newHeadless(t)
	l := listenStrangely(t, h.url[len("http://"):], func(c net.Conn) { _, _ = io.WriteString(c, "hello\r\n") })
	defer l.Close()
	clients := []*proxy{h.start("", nil), h.start("2025-06-18", nil)}
	var all sync.WaitGroup
	for _, p := range clients {
		all.Go(func() {
			if out, code, err := p.try(t.Context(), "create_session", h.agentArgs()); err != nil || code != "incompatible_server" {
				t.Errorf("%v %s %v", err, code, out)
			}
		})
	}
	all.Wait()
	if found := h.servers(t); len(found) > 0 {
		t.Errorf("a server was started: %v", found)
	}
	if found, err := filepath.Glob(filepath.Join(h.dir, "state", "*")); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
	l.Close()
	l.open.Wait()
	var pids [2]int
	for i, p := range clients {
		all.Go(func() {
			if out, code, err := p.try(t.Context(), "ping", obj{}); err == nil && code == "" {
				pids[i] = int(out["pid"].(float64))
			} else {
				t.Errorf("%v %s %v", err, code, out)
			}
		})
	}
	all.Wait()
	if pids[0] != pids[1] || pids[0] == 0 {
		t.Errorf("two servers: %v", pids)
	}
}

// servers are the living servers and supervisors of this test.
func (h *headless) servers(t *testing.T) (found []string) {
	t.Helper()
	left, err := fakehost.Survivors(h.caseID)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		if strings.Contains(p.Args, "harness supervise") || strings.Contains(p.Args, "harness serve") {
			found = append(found, p.Args)
		}
	}
	return found
}
