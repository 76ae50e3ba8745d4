package dispatch

import "github.com/agent-knock-knock/akk/internal/keyboard"

// desk is where every key outside a send is pressed.
func (s *Service) desk() keyboard.Desk {
	return keyboard.Desk{Finder: s.Scanner, LockDir: s.LockDir, Clock: s.Clock}
}
