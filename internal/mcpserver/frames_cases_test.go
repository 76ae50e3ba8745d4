package mcpserver_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// h1 is every frame of case H1.2 (and of the public probes) with what must come back: the
// codes and ids of the replies before the follow-up ping is answered.
var h1 = []struct {
	name, frame string
	want        []string // "code id"; code 0 is a result
}{
	{"broken JSON (M01)", `{bad json` + "\n", []string{"-32700 null"}},
	{"a number (M02)", "5\n", []string{"-32600 null"}},
	{"null (M02)", "null\n", []string{"-32600 null"}},
	{"an empty batch (M02)", "[]\n", []string{"-32600 null"}},
	{"no method (M02)", `{"jsonrpc":"2.0"}` + "\n", []string{"-32600 null"}},
	{"no method but an id", `{"jsonrpc":"2.0","id":9}` + "\n", []string{"-32600 9"}},
	{"version 1.0 (M02)", `{"jsonrpc":"1.0","id":9,"method":"ping"}` + "\n", []string{"-32600 9"}},
	{"an empty method", `{"jsonrpc":"2.0","id":9,"method":""}` + "\n", []string{"-32600 9"}},
	{"an unknown method", `{"jsonrpc":"2.0","id":9,"method":"nope"}` + "\n", []string{"-32601 9"}},
	{"a method of another capability", `{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}}` + "\n", []string{"-32601 9"}},
	{"two objects on a line (M02)", strings.TrimSpace(ping("31")) + " " + ping("32"), []string{"-32700 null"}},
	{"a byte order mark (M04)", "\xef\xbb\xbf" + ping("33"), []string{"0 33"}},
	{"a batch of two pings", "[" + strings.TrimSpace(ping("34")) + "," + strings.TrimSpace(ping("35")) + "]\n", []string{"-32600 null"}},
	{"an orphan response", `{"jsonrpc":"2.0","id":77,"result":{}}` + "\n", nil},
	{"a Host that does not know ping (M24)", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}` + "\n", nil},
	{"an error response without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}` + "\n", nil},
	{"three empty lines", "\n\n  \n", nil},
	{"CRLF", strings.TrimSpace(ping("36")) + "\r\n", []string{"0 36"}},
	{"a NUL byte", `{"jsonrpc":"2.0","id":9,` + "\x00" + `"method":"ping"}` + "\n", []string{"-32700 null"}},
	{"invalid UTF-8", `{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":{"x":"` + "\xff\xfe" + `"}}}` + "\n", []string{"-32700 null"}},
	{"an object id (M26)", `{"jsonrpc":"2.0","id":{},"method":"ping"}` + "\n", []string{"-32600 null"}},
	{"an array id", `{"jsonrpc":"2.0","id":[1],"method":"ping"}` + "\n", []string{"-32600 null"}},
	{"a boolean id", `{"jsonrpc":"2.0","id":true,"method":"ping"}` + "\n", []string{"-32600 null"}},
	{"a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n", []string{"-32600 null"}},
	{"a very long id", ping(`"` + strings.Repeat("x", 2000) + `"`), []string{"-32600 null"}},
	{"two ids", `{"jsonrpc":"2.0","id":9,"id":10,"method":"ping"}` + "\n", []string{"-32600 null"}},
	{"two methods", `{"jsonrpc":"2.0","id":9,"method":"ping","method":"tools/list"}` + "\n", []string{"-32600 9"}},
	{"a request and a response", `{"jsonrpc":"2.0","id":9,"method":"ping","result":{}}` + "\n", []string{"-32600 9"}},
	{"params 100,000 deep (M26)", `{"jsonrpc":"2.0","id":9,"method":"ping","params":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "}\n", []string{"-32600 9"}},
	{"params that are a number (M03)", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":7}` + "\n", []string{"-32602 9"}},
	{"params that are a list", `{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}` + "\n", []string{"-32602 9"}},
	{"a call without params", `{"jsonrpc":"2.0","id":9,"method":"tools/call"}` + "\n", []string{"-32602 9"}},
	{"a call with two names", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"count","name":"add"}}` + "\n", []string{"-32602 9"}},
	{"a call of an unknown tool", toolCall("9", "nope", "{}"), []string{"-32602 9"}},
	{"a task-augmented call", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"count","task":{}}}` + "\n", []string{"-32602 9"}},
	{"a call without an id", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add"}}` + "\n", nil},
	{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/nope","params":{}}` + "\n", nil},
	{"a cursor nobody gave", `{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"cursor":"x"}}` + "\n", []string{"-32602 9"}},
	{"a valid ping of 1,100,000 bytes (M21)", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("a", 1100000) + `"}}}` + "\n", []string{"0 5"}},
	{"a line of 20,000,000 bytes (M21)", `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("a", 20000000) + `"}}}` + "\n", []string{"-32600 5"}},
	{"a second initialize (M18)", strings.Replace(initialize, `"id":0`, `"id":1`, 1), []string{"-32600 1"}},
}

func replies(t *testing.T, lines []string) []string {
	t.Helper()
	var out []string
	for _, l := range lines {
		f := mustFrame(t, l)
		out = append(out, fmt.Sprintf("%d %s", f.code(), f.id()))
	}
	return out
}

// trial sends one frame and a ping, and compares what comes back.
func trial(t *testing.T, c *child, frame string, want []string, k int) {
	t.Helper()
	follow := fmt.Sprint(1000 + k)
	c.raw(frame)
	c.raw(ping(follow))
	before, _ := c.untilID(follow)
	got := replies(t, before)
	for len(got) < len(want) { // a reply of the SDK may come after that of the ping
		l, ok := c.line(patience)
		if !ok {
			break
		}
		got = append(got, replies(t, []string{l})...)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v; stderr: %s", got, want, c.stderr)
	}
}

func TestH1ABadFrameDoesNotEndAFreshSession(t *testing.T) { // H1
	for k, tc := range h1 {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, "", false)
			c.raw(handshake)
			c.untilID("0")
			trial(t, c, tc.frame, tc.want, k)
			c.in.Close()
			if rest := c.rest(); len(rest) != 0 {
				t.Errorf("more than one reply: %q", rest)
			}
			if code := c.exit(); code != 0 {
				t.Errorf("exit code %d; stderr: %s", code, c.stderr)
			}
		})
	}
}

func TestH1BadFramesTogetherDoNotEndOneSession(t *testing.T) { // H1, and memory of M21
	c := startChild(t, "", false)
	c.raw(handshake)
	c.untilID("0")
	start := rss(t, c.cmd.Process.Pid)
	for k, tc := range h1 {
		trial(t, c, tc.frame, tc.want, k)
	}
	if grown := rss(t, c.cmd.Process.Pid) - start; grown > 64<<20 {
		t.Errorf("the peak of memory grew by %d MiB, the limit is 64", grown>>20)
	}
	c.raw(toolCall("1", "count", "{}"))
	if _, reply := c.untilID("1"); !strings.Contains(reply, `"items":0`) {
		t.Errorf("a frame that was refused ran a tool: %s", reply)
	}
	if !strings.Contains(c.stderr.String(), "line=3") { // M04: stderr names the bad line
		t.Errorf("stderr does not name the first bad line: %.400s", c.stderr)
	}
	c.in.Close()
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// rss returns the peak resident set of a process in bytes.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0 // other systems: only the frames are proved
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(l, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no VmHWM in /proc/pid/status")
	return 0
}

func TestAStrayFirstLineDoesNotBrickTheSession(t *testing.T) { // M04
	for name, first := range map[string]string{
		"a banner":          "starting the bridge...\n",
		"a byte order mark": "\xef\xbb\xbf" + strings.Replace(initialize, `"id":0`, `"id":"bom"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			c := startChild(t, "", false)
			c.raw(first + ping("1"))
			c.untilID("1")
			c.raw(initialize)
			if _, reply := c.untilID("0"); mustFrame(t, reply).code() != 0 && !strings.HasPrefix(first, "\xef") {
				t.Errorf("initialize after a banner: %s", reply)
			}
			c.in.Close()
			if code := c.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestEveryIDComesBackAsItWasSent(t *testing.T) { // H1.3, M26
	c := startChild(t, "", false)
	c.raw(handshake)
	c.untilID("0")
	for _, id := range []string{`9007199254740993`, `9007199254740992`, `1.5`, `1`, `"1"`, `""`, `-0`, `1e3`, `123456789012345678901234567890`, `"\u0041<&>\u2028"`} {
		c.raw(ping(id))
		if _, reply := c.untilID(id); mustFrame(t, reply).code() != 0 {
			t.Errorf("id %s: %s", id, reply)
		}
	}
	c.raw(toolCall("9007199254740992", "add", "{}") + toolCall("9007199254740993", "add", "{}"))
	_, first := c.untilID("9007199254740992")
	_, second := c.untilID("9007199254740993")
	for reply, want := range map[string]string{first: `host-bridge:[\"bridge-child\",9007199254740992]`, second: `host-bridge:[\"bridge-child\",9007199254740993]`} {
		if !strings.Contains(reply, want) {
			t.Errorf("the two calls are not told apart: %s lacks %s", reply, want)
		}
	}
	if !strings.Contains(second, `"items":2`) {
		t.Errorf("the second call did not run: %s", second)
	}
}
