package sessions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-knock-knock/akk/internal/harness"
)

// Spec part 2.7: no request stays without an answer. After a login that is over nobody
// waits for one outside a turn either.
func TestARequestOutsideATurnIsDismissedAfterALoginToo(t *testing.T) {
	w := newWorld(t)
	w.loggedOut("s")
	w.choose("s", w.authenticate("s"))
	w.auth("s", "logged in", inState(harness.AuthReady))
	if st := w.say("s", "SAY yes; PERM-LATE"); st.State != harness.MessageCompleted {
		t.Fatalf("%s", text(st))
	}
	w.heard(`"outcome":"cancelled"`)
	if st, err := w.svc.AuthStatus(w.ctx, "s"); err != nil || len(st.Questions) > 0 || st.State != harness.AuthReady {
		t.Errorf("%s %v", text(st), err)
	}
}

// A turn that ends over its own open question: the agent is told, and the id of that
// question may come again.
func TestAQuestionThatItsTurnLeftOpenIsAnsweredAndItsIDIsFree(t *testing.T) {
	w := newWorld(t)
	w.create("s")
	if st := w.say("s", "PERM-LEFT; SAY over"); st.State != harness.MessageCompleted || st.Result.Text != "over" {
		t.Fatalf("%s", text(st))
	}
	w.heard(`"outcome":"cancelled"`)
	st := w.asked("s", "PERM-AGAIN", 1)
	q := st.Questions[0]
	w.answer("s", q.ID, harness.Answer{OptionID: q.Options[0].ID})
	if end := w.end("s", st.MessageID); end.State != harness.MessageCompleted || !strings.Contains(end.Result.Text, "[allowed:") {
		t.Errorf("%s", text(end))
	}
}

// Spec part 2.16: what a launch is given, an agent prints and its log holds may be secret by
// its name, its shape, or because it was given to this agent under such a name.
func TestSecretsOfALaunchAreStoredAndShownNowhere(t *testing.T) {
	w := newWorld(t)
	secrets := map[string]string{"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENG", "SSH_PASSPHRASE": "open-sesame-1001", "SESSION_COOKIE": "c00kie-c00kie-c00kie",
		"GOOGLE_KEY": "AIza" + strings.Repeat("b2C3", 9), "MY_API_KEY": "hunter2hunter2"}
	l := w.launchOf("s")
	for i, a := range l.Args {
		if a == w.journal { // the agent's own journal is no file of ours
			l.Args[i] = filepath.Join(w.cwd, "journal")
		}
	}
	l.Env = map[string]string{"PLAIN": "plain-to-see"}
	for name, value := range secrets {
		l.Env[name] = value
	}
	l.MCPServers = []harness.MCPServer{
		{Name: "one", Command: "/bin/true", Args: []string{"--api-key", "k3y-k3y-k3y-k3y"}},
		{Name: "two", Type: "http", URL: "https://someone:p4ssw0rd@localhost/mcp?token=t0ken-t0ken"},
	}
	if _, err := w.svc.Create(w.ctx, l); err != nil {
		t.Fatal(err)
	}
	st := w.say("s", "STDERR echo hunter2hunter2 and SSH_PASSPHRASE=open-sesame-1001; SAY x; EXIT 3")
	if text := text(st) + text(w.log("s")); st.State != harness.MessageFailed || !strings.Contains(text, "echo") || strings.Contains(text, "hunter2") || strings.Contains(text, "open-sesame") {
		t.Errorf("%s", text)
	}
	w.stop()
	stored := ""
	for _, name := range []string{"harness.db", "harness.db-wal"} {
		if b, err := os.ReadFile(filepath.Join(w.dir, name)); err == nil {
			stored += string(b)
		}
	}
	for _, value := range append([]string{"k3y-k3y", "p4ssw0rd", "t0ken-t0ken"}, values(secrets)...) {
		if strings.Contains(stored, value) {
			t.Errorf("%s is stored", value)
		}
	}
	if !strings.Contains(stored, "plain-to-see") {
		t.Error("what is no secret is not stored either")
	}
}

func values(m map[string]string) (out []string) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
