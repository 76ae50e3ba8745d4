// Package screen reads captures of Claude Code's terminal program: where the composer is
// and what is in it, whether a turn runs, which dialog is open, and how text must be typed
// to be a plain prompt.
//
// Everything is a pure function of its arguments. It knows no file, no process and no
// tmux command, and it never concludes from a screen that a turn is done.
package screen
