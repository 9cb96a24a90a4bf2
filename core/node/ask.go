package node

import (
	"macronode/core/event"
	"macronode/core/words"
)

// ask says where a request to an upstream goes, and what becomes of one that was tried.
func (n *Node) ask(now words.Instant, in *event.Ask, out *event.Effects) {
	told := event.Told{Slot: in.Slot}
	switch in.What {
	case event.AskPick:
		told.Picked = n.beyond.Pick(now, in.Pick)
	case event.AskRetry:
		told.Picked = n.beyond.Retry(now, in.Retry)
	case event.AskTried:
		told.Onward = n.beyond.Report(now, in.Tried)
	case event.AskLook:
		told.Standing = n.beyond.Look(in.Look)
	}
	out.Told = append(out.Told, told)
}
