// Package term is the terminal of the stand-in: bytes to keys, frames to the screen, raw
// mode, and text of a certain width. It knows no agent.
package term
